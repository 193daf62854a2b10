"""A submission that withholds its source: results are public, and no address quotes the text."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evaluator.messages.report import Verdict
from leaderboard.models import DataVersion, Problem, Run, Submission, Team, Visibility
from leaderboard.publishing import training_set
from leaderboard.read_model.withholding import OWN_WORDS, hushed_message
from leaderboard.submissions import teams
from tests.leaderboard import factory
from tests.leaderboard.conftest import Api
from tests.leaderboard.frozen import freeze
from tests.leaderboard.test_client import ABOUT, Pkb, pkb, token  # noqa: F401  fixtures
from tests.leaderboard.test_secrecy import World, addresses
from tests.leaderboard.uploads import Send
from tests.leaderboard.withheld import (
    MARK,
    OTHER,
    SOURCE,
    TOLD,
    TOLD_BY_API,
    digest_of,
    filled,
    make_withheld,
    telling,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def withheld(send: Send) -> Submission:
    return make_withheld(send)


def asked_of(withheld: Submission) -> list[str]:
    """Every address of the site, of each kernel and run of this submission."""
    public = factory.make_submission("Open One")
    own = factory.make_judged(public, withheld.kernels.earliest("pk").problem, speedup=2.0)
    found: dict[str, None] = {}
    others = [digest_of(OTHER), digest_of(SOURCE), own.kernel.source_id]
    runs = Run.objects.filter(kernel__submission=withheld).select_related("kernel")
    for run, other in zip(runs.order_by("kernel__problem", "kernel__step"), others, strict=True):
        digest = run.kernel.source_id
        found |= dict.fromkeys(addresses(World(withheld, public, run, digest, other)))
        found[f"/kernels/{other}?diff={digest}"] = None
        found[f"/kernels/{digest}?diff=previous"] = None
        found[f"/kernels/{digest}?diff=reference&run={run.pk}"] = None
    return list(found)


@pytest.mark.slow
def test_nobody_else_finds_the_text_anywhere(
    withheld: Submission, client: Client, owner: User, other: User, api: Api
) -> None:
    asked = asked_of(withheld)
    assert len(asked) > 1000
    own, theirs = Client(), Client()
    own.force_login(owner)
    theirs.force_login(other)
    pages = filled(withheld, TOLD)
    assert telling(own, pages) == pages
    assert telling(client, [*asked, *pages]) == []
    assert telling(theirs, [*asked, *pages]) == []
    calls = filled(withheld, TOLD_BY_API, "/api/v1/")
    of_api = [one for one in asked if one.startswith("/api/")]
    assert telling(api(owner), calls) == calls
    assert telling(api(other), [*of_api, *calls]) == []
    assert telling(api(), calls) == []


def test_its_pages_say_so_and_show_what_was_found(withheld: Submission, client: Client) -> None:
    page = client.get(f"/kernels/{digest_of(SOURCE)}").content.decode()
    assert "Source withheld by its submitter" in page
    assert f"SHA-256 <code>{digest_of(SOURCE)}</code>" in page
    assert "Correct in every trial." in page
    told = client.get(f"/api/v1/kernels/{digest_of(OTHER)}").json()
    assert (told["source"], told["withheld"], told["size_bytes"]) == (None, True, len(OTHER))
    failed = withheld.kernels.get(problem=1, step=2).runs.get()
    said = client.get(f"/api/v1/runs/{failed.pk}").json()
    assert said["message"].startswith("build error: compiler")
    assert (said["verdict"], said["cause"], said["evidence"]) == ("build_error", "compiler", None)
    report = client.get(f"/api/v1/runs/{failed.pk}/report").json()
    assert (report["logs"], report["flag_lines"]) == ([], {})
    assert report["withheld"] == "source withheld by its submitter"
    details = [one["detail"] for one in report["mechanisms"]]
    assert details == ["", "2 events", "12 system-wide atomics"]
    attempt = client.get(f"/submissions/{withheld.pk}/1/attempt-1").content.decode()
    assert "Transcript withheld" in attempt
    assert "source withheld" in client.get(f"/submissions/{withheld.pk}").content.decode()
    compared = client.get(f"/compare?kernels={digest_of(SOURCE)},{digest_of(OTHER)}")
    assert "is withheld by its submitter" in compared.content.decode()


def test_events_of_its_timelines_are_called_by_their_kinds(
    withheld: Submission, client: Client, owner: User
) -> None:
    run = withheld.kernels.get(problem=1, step=2).runs.get()
    whole = run.report or {}
    report = client.get(f"/api/v1/runs/{run.pk}/report").json()
    names = ["compute 1", "kernel 1", "compute 2", "kernel 1", "communication 1"]
    for told, line in zip(report["timelines"], whole["timelines"], strict=True):
        assert [event["name"] for event in told["events"]] == names
        assert told == {**line, "events": told["events"]}
        for shown, event in zip(told["events"], line["events"], strict=True):
            assert shown == {**event, "name": shown["name"]}
    bars = client.get(f"/runs/{run.pk}/trace.json").json()["traceEvents"]
    assert [bar["name"] for bar in bars if bar["ph"] == "X"] == names * 2
    drawn = client.get(f"/figures/timeline.csv?run={run.pk}").content.decode()
    assert "kernel 1,other kernel,0,1,10.0,5.5" in drawn
    client.force_login(owner)
    own = client.get(f"/figures/timeline.csv?run={run.pk}").content.decode()
    assert f"void {MARK}_reduce<8>(float*),other kernel,0,1,10.0,5.5" in own


def test_what_a_reader_may_not_read_is_in_no_cache(
    withheld: Submission, client: Client, owner: User
) -> None:
    for address in (one for one in filled(withheld, TOLD) if "?diff" not in one):
        for user in (None, owner):
            if user:
                client.force_login(user)
            answer = client.get(address)
            assert answer["Cache-Control"] in ("private, no-store", "no-cache"), address
            client.logout()


def test_team_and_staff_read_it(
    withheld: Submission, owner: User, other: User, staff: User
) -> None:
    teams.create(owner, "Acme")
    team = Team.objects.get()
    Submission.objects.filter(pk=withheld.pk).update(team=team)
    team.memberships.create(user=other, role="member")
    for user in (other, staff):
        client = Client()
        client.force_login(user)
        assert MARK in client.get(f"/kernels/{digest_of(OTHER)}").content.decode()


def test_its_owner_publishes_it_once_and_for_all(
    withheld: Submission, submitter: Any, other: User, staff: User, api: Api
) -> None:
    client = Client()
    calls = filled(withheld, TOLD_BY_API, "/api/v1/")
    before = [client.get(one).get("ETag") for one in calls]
    address = f"/api/v1/submissions/{withheld.pk}"
    no = api(other).patch(address, {"withholds_source": False}, format="json")
    assert no.status_code == 403
    of_staff = api(staff).patch(address, {"withholds_source": False}, format="json")
    assert of_staff.json()["error"]["code"] == "owner_publishes"
    done = submitter.patch(address, {"withholds_source": False}, format="json")
    assert done.status_code == 200, done.json()
    assert done.json()["withholds_source"] is False
    assert telling(client, filled(withheld, TOLD)) == filled(withheld, TOLD)
    assert telling(client, calls) == calls
    for one, etag in zip(calls, before, strict=True):
        headers = {"If-None-Match": etag} if etag else {}
        assert client.get(one, headers=headers).status_code == 200, one
    refused = submitter.patch(address, {"withholds_source": True}, format="json")
    assert refused.status_code == 409
    assert refused.json()["error"]["code"] == "source_not_withheld"


def test_the_page_that_edits_publishes_it_where_a_box_is_ticked(
    withheld: Submission, client: Client, owner: User
) -> None:
    client.force_login(owner)
    address = f"/submissions/{withheld.pk}/edit"
    assert "Publish the source" in client.get(address).content.decode()
    told = {"visibility": "public", "notes": "Soon."}
    assert client.post(address, told).status_code == 302
    withheld.refresh_from_db()
    assert withheld.withholds_source, "a box that is not ticked publishes nothing"
    assert client.post(address, told | {"licence": "MIT"}).status_code == 400
    assert (
        client.post(address, told | {"publish_source": "on", "licence": "MIT"}).status_code == 302
    )
    withheld.refresh_from_db()
    assert (withheld.withholds_source, withheld.licence) == (False, "MIT")
    page = client.get(address).content.decode()
    assert "Publish the source" not in page
    assert "Withholds source" in page, "the log of changes"


@pytest.mark.parametrize(
    ("address", "times"),
    [("/problems/1-allreduce", 2), ("/", 1), ("/matrix", 3), ("/models/{slug}", 1)],
)
def test_rows_of_tables_say_so(problem: Problem, client: Client, address: str, times: int) -> None:
    made, other = factory.make_submission(), factory.make_submission("Open One")
    for one in (made, other):
        factory.make_judged(one, problem, speedup=2.0)
    address = address.format(slug=made.model.slug)

    def told() -> tuple[int, int]:
        with CaptureQueriesContext(connection) as asked:
            page = client.get(address).content.decode()
        return page.count("source withheld"), len(asked)

    told()
    DataVersion.objects.bump()
    found, queries = told()
    assert found == 0
    Submission.objects.filter(pk=made.pk).update(withholds_source=True)
    DataVersion.objects.bump()
    assert told() == (times, queries)


def test_a_text_that_another_shows_is_shown(withheld: Submission, client: Client) -> None:
    problem = withheld.kernels.earliest("pk").problem
    shared = factory.make_submission("Open One", owner="other")
    factory.make_kernel(shared, problem, source=OTHER)
    page = client.get(f"/kernels/{digest_of(OTHER)}")
    assert MARK in page.content.decode()
    assert client.get(f"/api/v1/kernels/{digest_of(OTHER)}").json()["source"] == OTHER
    first = client.get(f"/kernels/{digest_of(SOURCE)}").content.decode()
    assert MARK not in first, "the other step stays withheld"
    attempt = client.get(f"/submissions/{withheld.pk}/1/attempt-1").content.decode()
    assert MARK not in attempt, "and so does what was said"


def test_an_unlisted_use_shows_its_own_pages_alone(
    withheld: Submission, client: Client, tmp_path: Path, settings: Any
) -> None:
    settings.STATE_DIR = tmp_path
    problem = withheld.kernels.earliest("pk").problem
    hidden = factory.make_submission("Mine", visibility=Visibility.UNLISTED, owner="other")
    run = factory.make_run(factory.make_kernel(hidden, problem, source=OTHER))
    digest = digest_of(OTHER)
    compared = f"/compare?kernels={digest},{digest_of(SOURCE)}"
    for address in (f"/kernels/{digest}", f"/api/v1/kernels/{digest}", compared):
        assert MARK not in client.get(address).content.decode(), address
    for other in Run.objects.filter(kernel__submission=withheld):
        for address in (
            f"/runs/{other.pk}",
            f"/runs/{other.pk}/bundle",
            f"/api/v1/runs/{other.pk}",
        ):
            assert MARK.encode() not in client.get(address).content, address
    whole = "".join(gzip.decompress(one.read_bytes()).decode() for one in freeze().glob("*.gz"))
    assert MARK not in whole
    assert client.get(f"/runs/{run.pk}").status_code == 200


def test_a_private_use_shows_it_to_its_owner_alone(
    withheld: Submission, client: Client, other: User
) -> None:
    problem = withheld.kernels.earliest("pk").problem
    hidden = factory.make_submission("Mine", visibility=Visibility.PRIVATE, owner="other")
    factory.make_kernel(hidden, problem, source=OTHER)
    assert MARK not in client.get(f"/kernels/{digest_of(OTHER)}").content.decode()
    client.force_login(other)
    assert MARK in client.get(f"/kernels/{digest_of(OTHER)}").content.decode()
    assert MARK not in client.get(f"/kernels/{digest_of(SOURCE)}").content.decode()


def test_snapshots_and_the_training_set_have_none_of_it(
    withheld: Submission, tmp_path: Path, settings: Any
) -> None:
    settings.STATE_DIR = tmp_path
    Submission.objects.filter(pk=withheld.pk).update(trust="verified")
    folder = freeze()
    whole = "".join(gzip.decompress(one.read_bytes()).decode() for one in folder.glob("*.gz"))
    assert digest_of(OTHER) in whole
    assert '"withholds_source": true' in whole
    assert MARK not in whole
    assert list(training_set.rows()) == []


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_message_stays_only_where_it_is_the_judges_own(verdict: Verdict) -> None:
    said = hushed_message(verdict, "compiler", MARK)
    assert (said == MARK) is (verdict in OWN_WORDS)
