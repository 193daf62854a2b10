"""Names the site's one Django app, loads its admin, and keeps what pages read in today's format."""

from typing import Any

from django.apps import AppConfig, apps
from django.db.models.signals import post_migrate, pre_migrate


class LeaderboardConfig(AppConfig):
    name = "leaderboard"
    verbose_name = "PKB Leaderboard"

    def ready(self) -> None:
        """Register the admin, which Django would look for at the top only, and the rebuild."""
        from leaderboard.operations import older_database
        from leaderboard.staff import admin  # noqa: F401

        _know_json_of_sqlite()
        _hide_tables_of_login()
        _end_sessions_without_second_factor()
        pre_migrate.connect(older_database.refuse, sender=self)
        post_migrate.connect(_rebuild_if_outdated, sender=self)
        post_migrate.connect(_find_languages, sender=self)


def _know_json_of_sqlite() -> None:
    """Say that SQLite knows JSON: Django asks each connection inside a transaction, which takes the
    write lock here, and keeps "no" for as long as the connection lasts where that is taken."""
    from django.db.backends.sqlite3.base import DatabaseWrapper  # imports the settings

    DatabaseWrapper.features_class.supports_json_field = True  # type: ignore[assignment, method-assign]


def _hide_tables_of_login() -> None:
    """Take the tables of allauth out of the admin: secrets of second factors stand in one."""
    from django.contrib.admin import site  # needs the apps

    for label in ("account", "mfa", "socialaccount", "usersessions"):
        for model in apps.get_app_config(label).get_models():
            if site.is_registered(model):
                site.unregister(model)


def _end_sessions_without_second_factor() -> None:
    from allauth.mfa.signals import authenticator_added  # needs the apps

    from leaderboard.account_pages.second_factor import end_other_sessions

    authenticator_added.connect(end_other_sessions)


def _rebuild_if_outdated(**_: Any) -> None:
    """Rebuild what pages read where an older release wrote it in another format."""
    from leaderboard.read_model import summary  # needs the models, which come after this module

    summary.rebuild_if_outdated()


def _find_languages(**_: Any) -> None:
    """Look into the sources that an older release stored."""
    from leaderboard.models import FoundLanguages, Source

    new = Source.objects.filter(packed__isnull=False, found=None)
    for digest in list(new.values_list("pk", flat=True)):
        FoundLanguages.objects.find([Source.objects.get(pk=digest)])
