from __future__ import annotations

import subprocess
import sys
from argparse import ArgumentParser
from itertools import chain
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from leaderboard.runs import catalogue

PASSED_ON = ("seeds", "jobs")


class Command(BaseCommand):
    help = "Screen problems for what they let pass, and show the findings on their pages."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("problem", nargs="*", help="slug or number; default: all")
        for name in PASSED_ON:
            parser.add_argument(f"--{name}", type=int, help="as `python -m problems audit` has it")

    def handle(self, *args: Any, **options: Any) -> None:
        """Audit in a process of its own, because the screen loads torch."""
        given = [
            (f"--{name}", str(options[name])) for name in PASSED_ON if options[name] is not None
        ]
        command = [sys.executable, "-m", "problems", "audit", *options["problem"], *chain(*given)]
        done = subprocess.run(command, cwd=settings.BASE_DIR, check=False)
        if done.returncode > 1:
            raise CommandError("the audit did not run to its end")
        try:
            catalogue.sync(catalogue.read_code())
        except catalogue.CatalogueError as error:
            raise CommandError(str(error)) from None
        if done.returncode:
            raise CommandError("the audit found problems that err: the list above names them")
