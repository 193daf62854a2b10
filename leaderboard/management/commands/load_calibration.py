from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from leaderboard.models import DataVersion, Hardware
from leaderboard.read_model import calibration
from problems.topology import slowest_pair


class Command(BaseCommand):
    help = "Keep what `python -m evaluator calibrate` measured on a class of hardware."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("hardware", help="such as h200x4; a host of it has said hello before")
        parser.add_argument("file", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            data = calibration.read(options["file"])
        except calibration.CalibrationError as error:
            raise CommandError(str(error)) from None
        slug = options["hardware"]
        with transaction.atomic():
            found = Hardware.objects.select_for_update().filter(slug=slug).first()
            if found is None:
                known = ", ".join(Hardware.objects.values_list("slug", flat=True)) or "none yet"
                raise CommandError(f"no host of {slug!r} has said hello; known: {known}")
            pair = slowest_pair(data)
            own = {calibration.FACT: data, calibration.PAIR_FACT: pair}
            found.facts = {**found.facts, **own}
            found.save(update_fields=["facts"])
            DataVersion.objects.bump()
        self.stdout.write(f"{len(data['measurements'])} measurements of {slug}")
