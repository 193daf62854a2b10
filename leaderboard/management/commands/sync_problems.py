from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from leaderboard.runs import catalogue


class Command(BaseCommand):
    help = "Bring the problem catalogue in step with fixtures/problems.json. Safe to repeat."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--file", type=Path, default=catalogue.EXPORT)
        parser.add_argument(
            "--from-code",
            action="store_true",
            help="export the problem files to it first; needs torch, which another process loads",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["from_code"]:
                entries = catalogue.read_code()
            else:
                entries = catalogue.read_file(options["file"])
        except catalogue.CatalogueError as error:
            raise CommandError(str(error)) from None
        changed = catalogue.sync(entries)
        self.stdout.write(f"{len(entries)} problems, {len(changed)} new or changed")
