from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from leaderboard.management import groups


class Command(BaseCommand):
    help = "Make the groups of staff, or give them this release's permissions and no other."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            made = groups.make()
        except LookupError as error:
            raise CommandError(str(error)) from None
        for group in made:
            self.stdout.write(f"{group.name}: {group.permissions.count()} permissions")
