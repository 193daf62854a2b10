from __future__ import annotations

from django.core.management.base import BaseCommand

from leaderboard.runs import hosts
from leaderboard.runs.notices import deliver


class Command(BaseCommand):
    help = (
        "Queue again what silent workers left, ring for runs whose bell was lost, publish what "
        "is under an embargo no longer and send notices. Every hello of a worker does the "
        "same, so this is for sites whose workers are all down."
    )

    def handle(self, *args: object, **options: object) -> None:
        self.stdout.write(f"rang for {hosts.sweep()} runs")
        self.stdout.write(f"sent {deliver()} notices")
