from __future__ import annotations

from django.core.management.base import BaseCommand

from leaderboard.runs import hosts


class Command(BaseCommand):
    help = (
        "Queue again what silent workers left, ring for runs whose bell was lost and publish what "
        "is under an embargo no longer. Every hello of a worker does the same, so this is "
        "for sites whose workers are all down."
    )

    def handle(self, *args: object, **options: object) -> None:
        self.stdout.write(f"rang for {hosts.sweep()} runs")
