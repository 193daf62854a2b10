from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from leaderboard.operations import backup


class Command(BaseCommand):
    help = "Bring back what `backup` wrote, on a site that is stopped. Then run migrate."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path)
        parser.add_argument("--replace", action="store_true", help="lose what this site has")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            manifest = backup.restore(options["folder"], replace=options["replace"])
        except backup.BackupError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"restored what was there at {manifest['made_at']}")
        self.stdout.write("set as before: " + ", ".join(backup.SECRETS))
