from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from leaderboard.operations import backup


class Command(BaseCommand):
    help = "Copy the database and the snapshots into a new folder, while the site runs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            manifest = backup.back_up(options["folder"])
        except backup.BackupError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"{options['folder']}: {len(manifest['files'])} files")
        self.stdout.write("not in it, keep them elsewhere: " + ", ".join(backup.SECRETS))
