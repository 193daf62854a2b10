from __future__ import annotations

import logging
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from leaderboard.operations import backup

logger = logging.getLogger(__name__)


class Command(BaseCommand):
    help = "Copy the database and the snapshots into a new folder, while the site runs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path)
        parser.add_argument(
            "--keep", type=int, metavar="N", help="remove all but the newest N next to it"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        folder, keep = options["folder"], options["keep"]
        if keep is not None and keep < 1:
            raise CommandError("--keep keeps one backup at least")
        try:
            manifest = backup.back_up(folder)
            gone = backup.prune(folder.parent, keep) if keep else []
        except (backup.BackupError, OSError) as error:
            logger.error("the backup %s failed: %s", folder, error)  # reaches ADMINS and Sentry
            raise CommandError(str(error)) from None
        self.stdout.write(f"{folder}: {len(manifest['files'])} files")
        for path in gone:
            self.stdout.write(f"removed the older {path}")
        self.stdout.write("not in it, keep them elsewhere: " + ", ".join(backup.SECRETS))
