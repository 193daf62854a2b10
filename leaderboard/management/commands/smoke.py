from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from leaderboard.operations import smoke


class Command(BaseCommand):
    help = (
        "Submit a kernel as private practice, have it judged, see it on its page, withdraw it: a "
        "line for each step with its seconds. Fails with the first step that fails."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--site", default=settings.PKB_PUBLIC_URL, help="its address: PKB_PUBLIC_URL"
        )
        parser.add_argument(
            "--hardware",
            action="append",
            default=[],
            help="class to judge on; repeat. Left out: each that has a serving host",
        )
        parser.add_argument(
            "--hosts", type=int, default=1, metavar="N", help="so many of each class have to serve"
        )
        parser.add_argument(
            "--wait", type=float, default=900.0, metavar="S", help="for a verdict: 900 s"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["site"]:
            raise CommandError("set PKB_PUBLIC_URL, or name the site: --site https://name")
        address = options["site"].rstrip("/")
        wanted = smoke.Wanted(
            classes=options["hardware"], hosts=options["hosts"], wait_s=options["wait"]
        )
        try:
            for step in smoke.steps(address, wanted):
                self.stdout.write(f"{step.name:<9} {step.seconds:6.1f} s  {step.said}")
                self.stdout.flush()
        except smoke.SmokeError as error:
            raise CommandError(str(error)) from None
