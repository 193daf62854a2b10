"""Takes one kernel the whole way on this site: submitted, judged, on its page, withdrawn.

Nobody else sees it: the submission is private practice of an account that nobody can sign up as.
Its rows stay, as all results do, and count nowhere.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.contrib.sessions.backends.db import SessionStore

from leaderboard.kit.json_types import JsonDict
from leaderboard.kit.request_error import RequestError
from leaderboard.models import ApiToken, Hardware, Scope, Submission, WorkerHost
from leaderboard.operations import readiness
from leaderboard.runs.withdrawing import withdraw

# A name that the site keeps for itself: kit/plain_names.py.
ACCOUNT, MODEL = "system", "PKB smoke test"
PROBLEM, BACKEND = "allreduce", "pytorch"
KERNEL = settings.BASE_DIR / "fixtures" / "kernels" / "1_allreduce_pytorch.py"
REQUEST_TIMEOUT_S, ASK_EVERY_S = 20.0, 1.0
HOSTS_WITHIN_S = 120.0
ENDED = ("done", "failed", "cancelled")


class SmokeError(Exception):
    """Says which step failed, why, and what to look at."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """Holds a step that went well, and how long it took."""

    name: str
    seconds: float
    said: str


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Says where to judge and for how long to wait. Without `classes` each that has a host is
    tried; every one has to have `hosts` that serve within HOSTS_WITHIN_S."""

    classes: Sequence[str] = ()
    hosts: int = 1
    wait_s: float = 900.0


def steps(address: str, wanted: Wanted) -> Iterator[Step]:
    """Yield each step once it is done, with a kernel for each class of hardware. Raises SmokeError
    at the first step that fails."""
    users = get_user_model().objects
    owner = users.filter(username=ACCOUNT).first() or users.create_user(username=ACCOUNT)
    with _Visitor.of(owner, address) as visitor:
        yield _timed("parts", _parts)
        yield _timed("address", visitor.version)
        yield _timed("hosts", lambda: _hosts(wanted))
        for hardware in wanted.classes or sorted(_serving()):
            yield from _Kernel(visitor=visitor, hardware=hardware).steps(wanted.wait_s)


def _timed(name: str, act: Callable[[], str]) -> Step:
    began_s = time.monotonic()
    try:
        said = act()
    except SmokeError as error:
        raise SmokeError(f"{name}: {error}") from None
    return Step(name=name, seconds=time.monotonic() - began_s, said=said)


def _parts() -> str:
    found = readiness.checks()
    if wrong := [f"{name} {said}" for name, said in found.items() if said != readiness.OK]:
        raise SmokeError("; ".join(wrong))
    return f"{', '.join(found)} are ok"


def _serving() -> dict[str, list[str]]:
    """Return the hosts that serve, by class of hardware."""
    found: dict[str, list[str]] = {}
    for queue, host in WorkerHost.objects.serving().order_by("host").values_list("queue", "host"):
        found.setdefault(queue, []).append(host)
    return found


def _hosts(wanted: Wanted) -> str:
    """Wait until there are as many hosts as wanted: workers take some seconds to start."""
    deadline_s = time.monotonic() + min(HOSTS_WITHIN_S, wanted.wait_s)
    while True:
        found = _serving()
        counts = [len(found.get(name, [])) for name in wanted.classes or found]
        if counts and min(counts) >= wanted.hosts:
            return "; ".join(f"{', '.join(names)} serve {name}" for name, names in found.items())
        if time.monotonic() > deadline_s:
            there = "; ".join(f"{name}: {', '.join(names)}" for name, names in found.items())
            raise SmokeError(
                f"{wanted.hosts} of a class have to serve, there is {there or 'none'}. "
                "Read the log of its worker; staff see at /hosts whether it is drained"
            )
        time.sleep(ASK_EVERY_S)


@dataclass(frozen=True, kw_only=True)
class _Visitor:
    """Speaks to the site over HTTP: by a token, in a browser's session, or as a stranger."""

    owner: AbstractBaseUser
    address: str
    token: str
    cookie: str

    @classmethod
    @contextlib.contextmanager
    def of(cls, owner: AbstractBaseUser, address: str) -> Iterator[_Visitor]:
        """Log the account in for the block."""
        hour = timedelta(hours=1)
        made, text = ApiToken.objects.issue(
            scope=Scope.SUBMIT, name="smoke", owner=owner, lifetime=hour
        )
        session = SessionStore()
        session[SESSION_KEY] = str(owner.pk)
        session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
        session[HASH_SESSION_KEY] = owner.get_session_auth_hash()
        session.set_expiry(hour)
        session.create()
        cookie = f"{settings.SESSION_COOKIE_NAME}={session.session_key}"
        try:
            yield cls(owner=owner, address=address, token=text, cookie=cookie)
        finally:
            session.delete()
            ApiToken.objects.filter(pk=made.pk).revoke()

    def ask(self, path: str, body: JsonDict | None = None, **headers: str) -> tuple[int, str]:
        """Return the status and the text of an answer. Raises SmokeError where there is none."""
        url = f"{self.address}{path}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data=data, headers=headers)
        try:
            with urllib.request.build_opener().open(request, timeout=REQUEST_TIMEOUT_S) as answer:
                return int(answer.status), answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            raise SmokeError(f"{url} does not answer: {error}") from None

    def call(self, path: str, body: JsonDict | None = None) -> Any:
        """Return the JSON that a call of the API answers. Raises SmokeError for a refusal."""
        told = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        status, text = self.ask(f"/api/v1{path}", body, **told)
        if status >= 300:
            raise SmokeError(f"{self.address}/api/v1{path} answered {status}: {text[:500]}")
        return json.loads(text)

    def version(self) -> str:
        serves = self.call("/status")["software_version"]
        if serves != settings.SOFTWARE_VERSION:
            ours = settings.SOFTWARE_VERSION
            raise SmokeError(f"the site serves {serves}, this is {ours}: restart the site")
        return f"{self.address} serves {serves}"


@dataclass(kw_only=True)
class _Kernel:
    """Takes a kernel its way on one class of hardware."""

    visitor: _Visitor
    hardware: str
    submission: int = 0
    run: str = ""

    def steps(self, wait_s: float) -> Iterator[Step]:
        """Yield the steps; what was submitted is withdrawn also where one fails."""
        try:
            yield _timed("submit", self.submit)
            yield _timed("judge", lambda: self.judge(wait_s))
            yield _timed("page", self.page)
            yield _timed("withdraw", self.withdraw)
        finally:
            if left := Submission.objects.filter(pk=self.submission, withdrawn_at=None).first():
                with contextlib.suppress(RequestError):
                    withdraw(left, self.visitor.owner, "The smoke test failed.")

    def submit(self) -> str:
        known = Hardware.objects.filter(slug=self.hardware).first()
        told = {"model": MODEL, "harness": "human", "problem": PROBLEM, "backend": BACKEND}
        placed = {"hardware": self.hardware, "practice": True, "visibility": "private"}
        if known and known.max_world_size == 1:
            placed["placement"] = "shared"
        source = {"source": KERNEL.read_text()}
        answer = self.visitor.call("/submissions", {**told, **placed, **source})
        self.submission, self.run = answer["submission"], answer["runs"][0]["id"]
        return f"submission {self.submission} for {self.hardware}, private practice"

    def judge(self, wait_s: float) -> str:
        deadline_s = time.monotonic() + wait_s
        while (run := self.visitor.call(f"/runs/{self.run}"))["status"] not in ENDED:
            if time.monotonic() > deadline_s:
                why = run["no_host"] or run["waits_for"] or "see the log of its worker"
                raise SmokeError(f"the run is {run['status']} after {wait_s:.0f} s: {why}")
            time.sleep(ASK_EVERY_S)
        if run["verdict"] != "ok":
            raise SmokeError(f"{run['verdict'] or run['status']}, not ok: {run['message']}")
        return f"ok on {run['host']}, isolation {run['isolation']}"

    def page(self) -> str:
        """See the result on the submission's page, which is there for its owner alone."""
        path = f"/submissions/{self.submission}"
        status, text = self.visitor.ask(path, Cookie=self.visitor.cookie)
        if status != 200 or f"/runs/{self.run}" not in text:
            raise SmokeError(f"{path} answered its owner {status}, without the run {self.run}")
        if (status := self.visitor.ask(path)[0]) != 404:
            raise SmokeError(f"{path} answered a stranger {status}, not 404")
        if MODEL in self.visitor.ask("/")[1]:
            raise SmokeError("the public board names the smoke test")
        return f"{path} shows the run to its owner; strangers get 404, the board has no row"

    def withdraw(self) -> str:
        answer = self.visitor.call(
            f"/submissions/{self.submission}/withdraw", {"reason": "A smoke test."}
        )
        if answer["moderation"] != "withdrawn":
            raise SmokeError(f"submission {self.submission} is {answer['moderation']}")
        return f"submission {self.submission} is withdrawn"
