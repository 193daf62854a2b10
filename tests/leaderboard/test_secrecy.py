"""A hidden submission tells nobody else that it is there: every public address answers as if it
were not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import NamedTuple

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone

from leaderboard.delivery.cached_answers import CACHED
from leaderboard.models import (
    DataVersion,
    Problem,
    Run,
    Submission,
    Team,
    Visibility,
)
from leaderboard.submissions import editing, teams
from leaderboard.urls import FIGURES
from tests.leaderboard import factory
from tests.leaderboard.conftest import Api
from tests.leaderboard.uploads import Send

pytestmark = pytest.mark.django_db

NAME, VENDOR = "Zyxsentinel 9", "Sentinelcorp"
MINE = "def solution(tensor):\n    return tensor + 0\n"
# Asked of pages beside nothing; one that does not know a parameter passes it over. Last what is no
# value of any, which a page that is there refuses.
OF_FIGURES = ("submission={hidden}", "run={run}", "model={slug}", "submission={hidden}&hardware=x")
QUERIES = (
    *("a={public}&b={hidden}", "kernels={own},{shared}", "models={slug}", "model={slug}"),
    *("q=zyxsentinel", "q=submission {hidden}", "q={run}", "q={own}", "submission={hidden}"),
    *("diff={own}", "attempts=all", "status=queued", "verdict=ok", "problem=2"),
    *("page=9", "verdict=x", "table=x", "hardware=x", "sort=x"),
)
# What staff and workers have, what does not depend on data, and a way from any address to another.
NOT_READ = (
    "admin/",
    "api/v1/worker/",
    "snapshots/",
    "api/v1/schema",
    "pkb.pyz",
    "<path:way>/",
    "^",
)
# What is new in each answer: when it was made, of which version of the data, and a form's secret.
PASSING = re.compile(
    r'\d\d:\d\d:\d\d(?:\.\d+)?|"data_version":\d+'
    r'|csrfmiddlewaretoken" value="\w+|name="key" value="\w+'
)


class World(NamedTuple):
    """Holds what addresses are made of."""

    hidden: Submission
    public: Submission
    run: Run
    own: str
    shared: str


def routes(found: list[URLPattern | URLResolver], stem: str = "") -> Iterator[str]:
    for one in found:
        route = stem + str(one.pattern)
        if isinstance(one, URLResolver) and not route.startswith(NOT_READ):
            yield from routes(one.url_patterns, route)
        elif isinstance(one, URLPattern) and not route.startswith(NOT_READ):
            yield route


def addresses(world: World) -> list[str]:
    """Return every address of the site, of each thing in it, with each query."""
    named: Mapping[str, tuple[object, ...]] = {
        "number": (world.hidden.pk, world.public.pk, 1, 2),
        "submission": (world.hidden.pk, world.public.pk),
        "digest": (world.own, world.shared),
        "run_id": (world.run.pk,),
        "problem": (1, 2),
        "attempt": (1,),
        "slug": (world.hidden.model.slug, "allreduce", "allgather", "tensor", "cpu", "acme"),
        "name": ("allreduce", *FIGURES),
    }
    told = {
        "hidden": world.hidden.pk,
        "public": world.public.pk,
        "run": world.run.pk,
        **{"own": world.own, "shared": world.shared, "slug": world.hidden.model.slug},
    }
    found: dict[str, None] = {}
    for route in routes(get_resolver().url_patterns):
        paths = ["/" + route]
        for name in re.findall(r"<\w+:(\w+)>", route):
            values = named.get(name, ("none",))
            if name == "name" and "figures" not in route:
                values = values[:1]
            filled = [
                [re.sub(rf"<\w+:{name}>", str(value), path) for value in values] for path in paths
            ]
            paths = [path for several in filled for path in several]
        if "figures" not in route or route.endswith(".json"):
            found |= dict.fromkeys(paths)
        if route.startswith("figures") == route.endswith(".json"):
            few, queries = (paths, OF_FIGURES) if "figures" in route else (paths[:1], QUERIES)
            found |= dict.fromkeys(
                f"{one}?{query.format(**told)}" for one in few for query in queries
            )
    return list(found)


def make_world() -> World:
    """Make a hidden submission that is the best of all, of a model of its own, under an embargo;
    one of its kernels is also that of the public submission."""
    problem, second = Problem.objects.all()
    public = Submission.objects.get()
    factory.make_model(NAME, VENDOR)
    team = Team.objects.get()
    end = timezone.now() + timedelta(days=9)
    made = factory.make_submission(NAME, visibility=Visibility.PRIVATE, k=7)
    Submission.objects.filter(pk=made.pk).update(notes=NAME, public_from=end, team=team)
    shared = factory.make_judged(made, problem, speedup=31.0)
    kernel = factory.make_kernel(made, second, source=MINE)
    run = factory.make_run(kernel)
    factory.finish(run, factory.make_report(run))
    factory.make_run(kernel, dtype="bfloat16")
    DataVersion.objects.bump()
    return World(made, public, run, kernel.source_id, shared.kernel.source_id)


def bodies(asked: list[str]) -> dict[str, tuple[int, str]]:
    cache.clear()
    CACHED.clear()
    client = Client(raise_request_exception=False)
    answers = {address: client.get(address) for address in asked}
    return {
        address: (answer.status_code, PASSING.sub("", b"".join(answer).decode(errors="replace")))
        for address, answer in answers.items()
    }


def test_every_address_answers_as_if_it_were_not_there() -> None:
    factory.make_judged(factory.make_submission("Open One"), factory.make_problem(), speedup=2.0)
    factory.make_problem(2, "allgather")
    teams.create(factory.make_user("other"), "Acme")
    with transaction.atomic():
        world = make_world()
        asked = addresses(world)
        there = bodies(asked)
        transaction.set_rollback(True)
    assert not Submission.objects.filter(pk=world.hidden.pk).exists()
    gone = bodies(asked)
    assert [one for one in asked if there[one] != gone[one]] == []
    told = [one for one in asked if re.search("sentinel", there[one][1], re.IGNORECASE)]
    assert [one for one in told if "q=zyxsentinel" not in one] == []
    assert {status for status, _ in there.values()} <= {200, 301, 302, 400, 401, 404, 405}


SECRET = {"model": NAME, "vendor": VENDOR, "harness": "zero-shot", "visibility": "private"}
KERNEL = {"problem": "allreduce", "backend": "pytorch", "source": factory.SOURCE}


def test_who_hands_in_a_model_of_the_same_name_learns_nothing(
    send: Send, other: User, api: Api, client: Client
) -> None:
    hidden = Submission.objects.get(pk=send(SECRET | KERNEL).json()["submission"])
    assert hidden.model.address == "zyxsentinel-9"
    told = {**SECRET, **KERNEL, "model": NAME.upper(), "vendor": "Another", "visibility": "public"}
    answer = api(other).post("/api/v1/submissions", told, format="json")
    assert answer.status_code == 201
    assert answer.json()["seen_before"] == []
    page = client.get("/models/zyxsentinel-9").content.decode()
    assert NAME.upper() in page
    assert not re.search(f"{VENDOR}|{NAME}", page)


def test_a_published_submission_is_of_the_model_that_everybody_knows(send: Send) -> None:
    hidden = Submission.objects.get(pk=send(SECRET | KERNEL).json()["submission"])
    owner = User.objects.get(username="owner")
    editing.edit(hidden, owner, {"visibility": Visibility.PUBLIC})
    hidden.refresh_from_db()
    assert (hidden.model.slug, hidden.model.vendor) == ("zyxsentinel-9", VENDOR)
    again = Submission.objects.get(
        pk=send({**SECRET, **KERNEL, "notes": "Again."}).json()["submission"]
    )
    assert again.model == hidden.model
