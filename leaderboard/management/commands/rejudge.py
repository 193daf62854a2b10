from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from leaderboard.kit.request_error import RequestError
from leaderboard.submissions import rejudging


class Command(BaseCommand):
    help = (
        "Queue results to be judged again; the old ones are kept. Stale are those of another "
        "version of their problem, or by another version of the judge."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--stale", action="store_true", help="stale results only")
        parser.add_argument("--problem", default="", help="its slug or number")
        parser.add_argument("--submission", default="", help="its number")
        parser.add_argument(
            "--wait", action="store_true", help="queue also for classes without a living host"
        )
        parser.add_argument("--dry-run", action="store_true", help="only say what would be done")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            chosen = rejudging.selection(
                stale=options["stale"],
                problem=options["problem"],
                submission=options["submission"],
                waits=options["wait"],
            )
        except RequestError as error:
            raise CommandError(str(error)) from None
        if options["dry_run"]:
            plan, done = rejudging.planned(chosen), "would be queued"
        else:
            plan, done = rejudging.rejudge(chosen, None), "queued"
        self.stdout.write(f"{chosen}: {len(plan.ready)} runs {done}")
        for why, numbers in plan.left_out.items():
            named = ", ".join(map(str, sorted(set(numbers))))
            self.stdout.write(f"{len(numbers)} left out: {why} (problems {named})")
