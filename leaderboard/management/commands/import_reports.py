from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from leaderboard.runs import house_kernels, imported_reports
from leaderboard.runs.report_lines import ReportLineError


class Command(BaseCommand):
    help = (
        "Store kernels with the reports that a judge made of them on another host: files of JSON "
        "lines, maybe compressed. All of them or nothing; safe to repeat. Without a file also the "
        "site's own kernels, in fixtures/house."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "file", nargs="*", type=Path, help=".jsonl or .jsonl.gz; default: those in fixtures/"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        paths = options["file"] or sorted(imported_reports.SHIPPED.glob("*.jsonl.gz"))
        if not options["file"] and (new := house_kernels.load(imported_reports.owner().pk)):
            self.stdout.write(f"fixtures/house: {new} kernels")
        try:
            loaded = imported_reports.load(*paths)
        except ReportLineError as error:
            raise CommandError(f"{error}\nnothing was stored") from None
        for path, found in zip(paths, loaded, strict=True):
            if found is None:
                self.stdout.write(f"{path.name}: already stored")
                continue
            self.stdout.write(f"{path.name}: {found.submissions} submissions, {found.runs} runs")
            if found.older:
                told = "of kernels that were written for an older task; they do not count"
                self.stdout.write(f"{path.name}: {found.older} runs {told}")
            for where in found.stale:
                self.stdout.write(f"{where}: of another version of its problem; does not count")
