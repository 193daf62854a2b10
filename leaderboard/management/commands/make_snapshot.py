from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from leaderboard import snapshots


class Command(BaseCommand):
    help = "Freeze the public board into files that can be cited: JSON lines, Parquet, hashes."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("tag", help="its name for ever, such as 2026-11")

    def handle(self, *args: Any, **options: Any) -> None:
        from leaderboard import snapshot_files  # pyarrow, which no other command needs

        try:
            made = snapshot_files.make(options["tag"])
        except snapshot_files.CannotMake as error:
            raise CommandError(str(error)) from None
        for file in made.files:
            self.stdout.write(f"{file['sha256']}  {file['name']}")
        size = sum(file["bytes"] for file in made.files)
        self.stdout.write(f"{snapshots.folder(made.tag)}: {len(made.files)} files, {size} bytes")
