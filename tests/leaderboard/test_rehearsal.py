"""What docs/operate.md rehearses is done here, line by line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as site
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from leaderboard.models import Ban, HostState, Run, Status, WorkerHost
from leaderboard.runs.claims import OutOfService
from tests.leaderboard import factory
from tests.leaderboard.running import claim, fresh, say_hello

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.server]
FOLDER = "/var/backups/pkb/rehearsal"


def _lines() -> Iterator[str]:
    text = (Path(site.BASE_DIR) / "docs" / "operate.md").read_text()
    part = re.search(r"^## A rehearsal\n(.*?)^## ", text, re.M | re.S)
    assert part
    yield from re.findall(r"^    (\S.*)$", part[1], re.M)


class Rehearsal:
    """Does by hand, as the operator `root`, what is not a command."""

    def __init__(self) -> None:
        self.browser, self.owner = Client(), factory.make_user("root")
        User.objects.filter(pk=self.owner.pk).update(is_staff=True, is_superuser=True)
        self.browser.force_login(User.objects.get(pk=self.owner.pk))
        made = factory.make_submission("First", owner="cheat")
        self.run = factory.make_judged(made, factory.make_problem())

    def acts(self) -> dict[str, Callable[[], object]]:
        """Return what to do by the words of its line."""
        return {
            "start a worker": lambda: say_hello(token="rehearsal"),
            "drain it": lambda: self.put(HostState.DRAINED),
            "is given no more runs": self.is_given_nothing,
            "ban the account": self.ban,
            "enable it": lambda: self.put(HostState.SERVING),
            "judges again": self.judges_again,
            "lose the machine": lambda: call_command("flush", interactive=False),
            "all that staff did": self.all_is_there,
        }

    def put(self, state: HostState) -> None:
        host = WorkerHost.objects.get(host="h")
        self.browser.post("/hosts", {"host": host.pk, "state": state.value})
        assert WorkerHost.objects.get().state == state

    def is_given_nothing(self) -> None:
        waiting = factory.make_run(self.run.kernel)
        with pytest.raises(OutOfService):
            claim(waiting, "h", "rehearsal")

    def ban(self) -> None:
        told = {"account": "cheat", "hide": "1", "reason": "Reads other ranks' memory."}
        self.browser.post("/bans", told)
        assert Ban.objects.get().user.username == "cheat"
        assert "First" not in self.browser.get("/").text

    def judges_again(self) -> None:
        again = Run.objects.queued().get()
        claim(again, "h", "rehearsal")
        assert fresh(again).status == Status.RUNNING

    def all_is_there(self) -> None:
        self.browser.force_login(User.objects.get(username="root"))
        page = self.browser.get("/audit").text
        for word in ("make", "ban", "drain", "rejudge"):
            assert word in page, word
        assert Run.objects.filter(status=Status.DONE).exists()


def test_the_rehearsal_is_what_happens(tmp_path: Path, settings: Any) -> None:
    settings.STATE_DIR = tmp_path / "state"
    rehearsal = Rehearsal()
    left = rehearsal.acts()
    for line in _lines():
        if line.startswith("#"):
            (name,) = (name for name in left if name in line)
            left.pop(name)()
        else:
            number = rehearsal.run.kernel.submission_id
            told = line.replace("--submission 1", f"--submission {number}")
            words = shlex.split(told.replace(FOLDER, str(tmp_path / "kept")))
            call_command(*words[2:], stdout=StringIO())
    assert not left
