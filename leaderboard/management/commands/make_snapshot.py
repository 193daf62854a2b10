from __future__ import annotations

from argparse import ArgumentParser
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from leaderboard.models import Snapshot
from leaderboard.publishing import snapshots


class Command(BaseCommand):
    help = "Freeze the public board into files that can be cited: JSON lines, Parquet, hashes."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("tag", nargs="?", help="its name for ever; default: today's date")
        parser.add_argument(
            "--if-none", action="store_true", help="do nothing where there is a snapshot already"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["if_none"] and (newest := Snapshot.objects.first()):
            self.stdout.write(f"{newest.tag} is there already")
            return
        from leaderboard.publishing import snapshot_files  # pyarrow, which no other command needs

        tag = options["tag"]
        if tag is None:
            tag = snapshot_files.free_tag(datetime.now(UTC).date().isoformat())
        try:
            made = snapshot_files.make(tag)
        except snapshot_files.SnapshotError as error:
            raise CommandError(str(error)) from None
        for file in made.files:
            self.stdout.write(f"{file['sha256']}  {file['name']}")
        size = sum(file["bytes"] for file in made.files)
        self.stdout.write(f"{snapshots.folder(made.tag)}: {len(made.files)} files, {size} bytes")
