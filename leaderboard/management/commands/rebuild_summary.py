from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from leaderboard.models import DataVersion
from leaderboard.read_model import summary


class Command(BaseCommand):
    help = "Make the summary that pages read anew from the runs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--check",
            action="store_true",
            help="change nothing; recompute with pandas and fail where the summary differs",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["check"]:
            self.stdout.write(f"{summary.rebuild()} rows")
            DataVersion.objects.bump()
            return
        from leaderboard.read_model import summary_check  # pandas, which no other command needs

        differences = summary_check.differences()
        if differences:
            raise CommandError("the summary is wrong:\n" + "\n".join(differences))
        self.stdout.write("the summary is right")
