from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class LeaderboardConfig(AppConfig):
    name = "leaderboard"
    verbose_name = "PKB Leaderboard"

    def ready(self) -> None:
        post_migrate.connect(_make_summary_anew, sender=self)


def _make_summary_anew(**_: Any) -> None:
    """Rebuild what pages read where an older release wrote it in another format."""
    from leaderboard import summary  # needs the models, which are not there when this is read

    summary.rebuild_if_outdated()
