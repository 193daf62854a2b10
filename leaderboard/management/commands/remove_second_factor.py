from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from allauth.mfa.models import Authenticator
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from leaderboard.submissions import moderation


class Command(BaseCommand):
    help = "Remove the second factor of an account whose owner has lost app and recovery codes."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", help="name of the account")

    def handle(self, *args: Any, **options: Any) -> None:
        with transaction.atomic():
            found = Authenticator.objects.filter(user__username=options["user"])
            if not found.delete()[0]:
                users = get_user_model().objects.filter(username=options["user"])
                raise CommandError(
                    "it has no second factor" if users.exists() else "there is no such account"
                )
            moderation.note(None, "remove second factor", f"account {options['user']}", {})
        self.stdout.write("removed; the password alone logs in now")
