"""Who is judged next: the account that used the judge least lately; and how much may wait."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.test import APIClient

from leaderboard.api.access import SubmitThrottle
from leaderboard.models import JudgeUse, Problem, Run, Submission
from leaderboard.models.waiting import ahead_of, used_lately
from leaderboard.runs import evaluation
from leaderboard.runs.claims import OthersFirst
from leaderboard.submissions import teams
from leaderboard.submissions.practice import QuotaSpent, check_queue
from tests.leaderboard import factory
from tests.leaderboard.conftest import Api, Bells
from tests.leaderboard.running import HELLO, claim, fresh, report_of, say_hello
from tests.leaderboard.uploads import ONE, Send, make_zip

pytestmark = pytest.mark.server


@pytest.fixture
def queue(problem: Problem) -> dict[str, list[Run]]:
    """Two runs of each account, in the order greedy, greedy, modest, modest."""
    return {
        name: [
            factory.make_run(factory.make_kernel(made, problem, attempt=attempt))
            for attempt in (1, 2)
        ]
        for name in ("greedy", "modest")
        for made in (factory.make_submission(owner=name),)
    }


def _used(name: str, seconds: float, hours_ago: float = 1) -> None:
    ended = timezone.now() - timedelta(hours=hours_ago)
    began = ended - timedelta(seconds=seconds)
    JudgeUse.objects.add(factory.make_user(name).pk, "cpu", began, ended)


def _places(queue: dict[str, list[Run]]) -> list[int]:
    return [ahead_of(fresh(run)) for runs in queue.values() for run in runs]


def test_who_used_less_goes_first_and_places_say_so(
    queue: dict[str, list[Run]], bells: Bells
) -> None:
    assert _places(queue) == [0, 1, 2, 3]
    _used("greedy", 60)
    _used("modest", 600, hours_ago=30)
    assert _places(queue) == [2, 3, 0, 1]
    say_hello(HELLO)
    assert [run_id for run_id, _ in bells] == [run.pk for run in queue["modest"]]
    with pytest.raises(OthersFirst):
        claim(queue["greedy"][0], "h")
    assert fresh(queue["greedy"][0]).rung_at is None
    claim(queue["modest"][0], "h")


def test_practice_of_who_used_nothing_waits_behind_what_is_ranked(
    queue: dict[str, list[Run]],
) -> None:
    _used("greedy", 60)
    Submission.objects.filter(owner__username="modest").update(is_practice=True)
    assert _places(queue) == [0, 1, 2, 3]
    with pytest.raises(OthersFirst):
        claim(queue["modest"][0])
    claim(queue["greedy"][0])


def test_what_is_judged_and_was_judged_counts(queue: dict[str, list[Run]]) -> None:
    greedy = factory.make_user("greedy").pk
    holding = claim(first := queue["greedy"][0]).holding
    began = timezone.now() - timedelta(seconds=100)
    Run.objects.filter(pk=first.pk).update(started_at=began)
    assert used_lately("cpu")[greedy] == pytest.approx(100, abs=20)
    with pytest.raises(OthersFirst):
        claim(queue["greedy"][1])
    evaluation.finish(first.pk, holding, report_of(first))
    assert JudgeUse.objects.get().seconds == pytest.approx(100, abs=20)
    assert used_lately("cpu") == JudgeUse.objects.lately("cpu")
    assert used_lately("h200x4") == {}


def test_who_ends_a_run_or_is_refused_one_hears_what_is_next(
    queue: dict[str, list[Run]], worker: APIClient, bells: Bells
) -> None:
    _used("greedy", 60)
    hello = {
        **{name: getattr(HELLO, name) for name in ("host", "queue", "hardware", "isolation")},
        **{"judge_version": HELLO.judge_version, "versions": {}},
    }
    worker.post("/api/v1/worker/hello", hello, format="json")
    Run.objects.update(rung_at=None)
    bells.clear()
    who = {name: hello[name] for name in ("host", "isolation", "judge_version")}
    address = f"/api/v1/worker/runs/{queue['greedy'][0].pk}/claim"
    assert worker.post(address, who, format="json").status_code == 409
    assert [run_id for run_id, _ in bells] == [run.pk for run in queue["modest"]]


def test_no_more_of_an_account_waits_than_the_site_allows(
    send: Send, settings: LazySettings, owner: User
) -> None:
    settings.PKB_QUEUED_RUNS_PER_ACCOUNT = 2
    two = make_zip(
        {
            f"{n}_{slug}_pytorch.py": factory.SOURCE.encode()
            for n, slug in ((1, "allreduce"), (2, "allgather"))
        }
    )
    fields = {"model": "M", "harness": "zero-shot"}
    assert send(ONE).status_code == 201
    refused = send(fields, two)
    assert refused.status_code == 429
    assert refused.json()["error"]["code"] == "queue_quota"
    assert "1 runs of yours wait, teams included, and 2 would come; 2 may." in refused.text
    assert refused["Retry-After"]
    assert (Submission.objects.count(), Run.objects.count()) == (1, 1)
    settings.PKB_QUEUED_RUNS_PER_ACCOUNT = 1
    assert send(fields, two).status_code == 400
    settings.PKB_QUEUED_RUNS_PER_ACCOUNT = 3
    assert send(fields, two).status_code == 201


def _team(owner: User, name: str) -> User:
    return teams.create(owner, name).account


def test_teams_of_one_person_have_one_turn_and_one_quota(
    problem: Problem, settings: LazySettings
) -> None:
    person, other = factory.make_user("many"), factory.make_user("one")
    accounts = [person, _team(person, "First"), _team(person, "Second")]
    made = [factory.make_submission(owner=account.username) for account in [*accounts, other]]
    runs = [factory.make_run(factory.make_kernel(own, problem)) for own in made]
    assert [ahead_of(run) for run in runs] == [0, 1, 2, 3]
    _used("team:first", 60)
    assert [ahead_of(run) for run in runs] == [1, 2, 3, 0]
    with pytest.raises(OthersFirst):
        claim(runs[2])
    settings.PKB_QUEUED_RUNS_PER_ACCOUNT = 3
    for account in accounts:
        with pytest.raises(QuotaSpent, match="teams included"):
            check_queue(account, 1)
    check_queue(other, 2)


@pytest.mark.django_db
def test_requests_are_counted_by_person(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SubmitThrottle, "rate", "2/min", raising=False)
    person = factory.make_user("many")
    accounts = [person, person, _team(person, "First")]
    answers = [api(own).post("/api/v1/submissions", {}).status_code for own in accounts]
    assert answers == [400, 400, 429]
    assert api(factory.make_user("one")).post("/api/v1/submissions", {}).status_code == 400
