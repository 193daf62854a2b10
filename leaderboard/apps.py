"""Names the site's one Django app and loads its admin."""

from django.apps import AppConfig


class LeaderboardConfig(AppConfig):
    name = "leaderboard"
    verbose_name = "PKB Leaderboard"

    def ready(self) -> None:
        """Register the admin, which Django would look for at the top only."""
        from leaderboard.staff import admin  # noqa: F401
