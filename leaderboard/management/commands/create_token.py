from __future__ import annotations

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError

from leaderboard.models import ApiToken, Scope
from leaderboard.submissions.moderation import note_token

GOOD_FOR = {"queues": "queue", "hosts": "host", "groups": "groups"}


class Command(BaseCommand):
    help = "Make an API token and print it: the only time that it can be read."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--scope", required=True, choices=Scope.values)
        parser.add_argument("--name", default="command line", help="what it is for")
        parser.add_argument(
            "--user", help="owner of a read or submit token; made, without a password, if new"
        )
        parser.add_argument(
            "--queue", action="append", default=[], help="class that a worker token is for; repeat"
        )
        parser.add_argument(
            "--host", action="append", default=[], help="host that may use it: any if left out"
        )
        parser.add_argument(
            "--groups", type=int, default=1, help="how many runs a worker's host may have at once"
        )
        parser.add_argument(
            "--days", type=int, default=90, help="how long it is valid: 90 if left out, 0 for ever"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        scope = Scope(options["scope"])
        if (scope == Scope.WORKER) == bool(options["user"]):
            raise CommandError("a read or submit token needs --user, a worker token has none")
        if (scope == Scope.WORKER) != bool(options["queue"]):
            raise CommandError("a worker token needs --queue, others are for none")
        owner = None
        if options["user"]:
            users = get_user_model().objects
            owner = users.filter(username=options["user"]).first()
            owner = owner or users.create_user(username=options["user"])
        lifetime = timedelta(days=options["days"]) if options["days"] else None
        token, text = ApiToken.objects.issue(
            scope=scope,
            name=options["name"],
            owner=owner,
            lifetime=lifetime,
            good_for={name: options[option] for name, option in GOOD_FOR.items()},
        )
        note_token(token, None)
        self.stdout.write(text)
