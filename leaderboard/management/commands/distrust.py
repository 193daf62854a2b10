from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from leaderboard.models import ApiToken, Run
from leaderboard.submissions import moderation


class Command(BaseCommand):
    help = (
        "Invalidate every submission with a result of one worker token, which is revoked, or "
        "of one host. Results stay readable, with the reason; handed in again they are judged anew."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("--token", help="the first characters that the admin shows of it")
        which.add_argument("--host", help="the name of a host")
        parser.add_argument("--reason", default=moderation.NOT_TRUSTED, help="told to everybody")
        parser.add_argument("--staff", required=True, help="who says so, for the audit log")

    def handle(self, *args: Any, **options: Any) -> None:
        users = get_user_model().objects.filter(is_staff=True)
        actor = users.filter(username=options["staff"]).first()
        if actor is None:
            raise CommandError(f"{options['staff']} is not of the staff")
        with transaction.atomic():
            runs = Run.objects.filter(host=options["host"])
            if options["token"]:
                token = _token(options["token"])
                moderation.revoke(token, actor)
                runs = Run.objects.filter(token=token)
            found = moderation.invalidate_judged(runs, actor, options["reason"])
        self.stdout.write(f"{len(found)} submissions are invalidated: {found}")


def _token(prefix: str) -> ApiToken:
    found = list(ApiToken.objects.filter(prefix=prefix)[:2])
    if len(found) != 1:
        raise CommandError(f"{len(found)} tokens begin with {prefix}")
    return found[0]
