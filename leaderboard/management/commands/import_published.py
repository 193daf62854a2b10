from __future__ import annotations

from django.core.management.base import BaseCommand

from leaderboard.submissions import published_results


class Command(BaseCommand):
    help = "Load the results that the benchmark's authors published, as claims. Safe to repeat."

    def handle(self, *args: object, **options: object) -> None:
        self.stdout.write(f"{published_results.load()} published claims")
