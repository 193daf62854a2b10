"""Training: batches judged after all runs, no submissions, nobody reads what is another's."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.utils import timezone

from evaluator.messages.codec import encode
from evaluator.messages.feedback import training_report
from evaluator.messages.job import Placement
from evaluator.messages.report import RankLog, Verdict
from leaderboard.kit.request_error import RequestError
from leaderboard.models import (
    HostState,
    Judgement,
    Kernel,
    Problem,
    Run,
    Source,
    Submission,
    TrainingGroup,
    WorkerHost,
)
from leaderboard.runs import hosts, training
from leaderboard.runs.claims import Holding, HoldsEnough, LeaseLost, OthersFirst, OutOfService
from tests.leaderboard import factory
from tests.leaderboard.conftest import Api, Bells
from tests.leaderboard.running import HELLO, claim, claimant, say_hello
from tests.leaderboard.uploads import GOOD

pytestmark = [pytest.mark.server, pytest.mark.django_db]

BATCH, RESULTS, CANCEL = (f"/api/v1/training/{name}" for name in ("batch", "results", "cancel"))
ITEM: dict[str, Any] = {"id": "a", "problem": "allreduce", "source": GOOD.decode()}
Send = Callable[..., Any]


@pytest.fixture
def train(api: Api, owner: User, problem: Problem) -> Send:
    """Posts to an address of training, as `owner` unless another user is named."""

    def post(address: str, body: object, user: User = owner) -> Any:
        text = json.dumps(body)
        return api(user).post(address, text, content_type="application/json")

    return post


def _send(train: Send, *items: dict[str, Any], **more: Any) -> dict[str, Any]:
    answer = train(BATCH, {"items": [ITEM | item for item in items]}, **more)
    assert answer.status_code == 200, answer.json()
    return dict(answer.json())


def _named(key: str) -> Judgement:
    return Judgement.objects.select_related("problem").get(key=key)


def _report(one: Judgement, verdict: Verdict = Verdict.OK, **changes: Any) -> dict[str, Any]:
    """As the worker that has it sends it: nothing is timed where ranks share a device."""
    if verdict is Verdict.OK and one.placement == Placement.SHARED:
        changes.setdefault("timing", None)
    made = dict(encode(factory.make_report(one.as_run(), verdict, **changes)))
    made["environment"]["host"] = "host-1"
    return made


def _lease(one: Judgement) -> Holding:
    return training.lease(one.pk, claimant(one.as_run())).holding


def _judge(one: Judgement, verdict: Verdict = Verdict.OK, **changes: Any) -> None:
    holding = _lease(one)
    training.finish(one.pk, holding, _report(_named(one.key), verdict, **changes))


def _results(train: Send, *ids: str, **more: Any) -> dict[str, Any]:
    answer = train(RESULTS, {"ids": ids}, **more)
    assert answer.status_code == 200, answer.json()
    return dict(answer.json())


def test_a_batch_is_judged_and_leaves_no_submission(train: Send) -> None:
    told = _send(train, {"id": "a"}, {"id": "b"})
    assert [item["status"] for item in told["items"]] == ["accepted", "accepted"]
    _judge(_named("a"))
    answer = _results(train, "a", "b", "c")
    assert [one["id"] for one in answer["results"]] == ["a"]
    assert (answer["waiting"], answer["unknown"]) == (["b"], ["c"])
    report = answer["results"][0]["report"]
    assert (report["verdict"], report["speedup"]) == ("ok", None)
    assert report["feedback"].startswith("verdict: ok")
    for model in (Submission, Kernel, Run, Source):
        assert not model.objects.exists()


def test_an_item_that_is_sent_again_is_one_and_another_under_its_id_is_refused(
    train: Send,
) -> None:
    _send(train, {})
    _send(train, {})
    told = _send(train, {"source": f"{ITEM['source']}# other\n"})["items"][0]
    assert (told["status"], told["error"]["code"]) == ("refused", "id_reused")
    assert Judgement.objects.count() == 1


def test_one_that_cannot_be_judged_is_refused_alone(train: Send) -> None:
    told = _send(
        train,
        {"id": "good"},
        {"id": "nul", "source": "def solution(): ...\0"},
        {"id": "half", "source": "def solution(): '\ud800'"},
        {"id": "where", "problem": "9" * 60},
        {"id": "size", "size": "huge"},
    )["items"]
    codes = {one["id"]: one["error"]["code"] for one in told if one["status"] == "refused"}
    assert codes == {
        "nul": "nul_byte",
        "half": "not_utf8",
        "where": "unknown_problem",
        "size": "bad_size",
    }


@pytest.mark.parametrize(
    "body",
    [
        {"items": []},
        {"items": [ITEM] * 65},
        {"items": [ITEM, ITEM]},
        {"items": [{**ITEM, "id": "a b"}]},
        {"items": [{**ITEM, "id": "a\n"}]},
        {"items": [{**ITEM, "id": "a" * 65}]},
        {"items": [{**ITEM, "secret": "0" * 32}]},
        {"items": [{**ITEM, "tier": "rank"}]},
        {"items": {"a": 1}},
    ],
)
def test_a_batch_that_is_none_stores_nothing(train: Send, body: dict[str, Any]) -> None:
    assert train(BATCH, body).status_code == 400
    assert not Judgement.objects.exists()


def test_a_batch_is_not_read_where_it_is_too_long_or_too_many_are_in_flight(
    train: Send, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leaderboard.submissions.training._made", lambda *_: pytest.fail("read"))
    long = "#" * (200 << 10)
    items = [ITEM | {"id": f"i{n}", "source": long} for n in range(22)]
    assert train(BATCH, {"items": items}).status_code == 413
    settings.PKB_TRAINING_IN_FLIGHT = 1
    assert train(BATCH, {"items": items[:2]}).status_code == 429


def test_nobody_reads_or_cancels_what_is_anothers(train: Send, other: User) -> None:
    _send(train, {})
    assert _results(train, "a", user=other)["unknown"] == ["a"]
    assert train(CANCEL, {"ids": ["a"]}, user=other).json() == {"cancelled": 0}
    _send(train, {"source": f"{ITEM['source']}# mine\n"}, user=other)
    assert Judgement.objects.count() == 2
    assert train(CANCEL, {"ids": ["a"]}).json() == {"cancelled": 1}


def test_without_a_token_nothing_is_answered(api: Api, problem: Problem) -> None:
    for address in (BATCH, RESULTS, CANCEL):
        assert api().post(address, {}, format="json").status_code == 401


def test_a_group_shares_one_secret_and_no_other_has_it(train: Send, other: User) -> None:
    _send(
        train, *({"id": f"g{n}", "group_id": "g"} for n in range(2)), {"id": "h", "group_id": "h"}
    )
    _send(train, {"id": "alone"}, {"id": "alone-2"})
    _send(train, {"id": "theirs", "group_id": "g"}, user=other)
    secret = {one.key: one.secret for one in Judgement.objects.all()}
    assert secret["g0"] == secret["g1"]
    assert len(set(secret.values())) == len(secret) - 1
    assert all(len(one) == 32 for one in secret.values())
    job = training.lease(_named("g0").pk, claimant(_named("g0").as_run())).job
    assert job.secret == secret["g0"]
    assert secret["g0"] not in repr(job)


def test_a_secret_reaches_no_answer_and_is_forgotten_with_the_source(train: Send) -> None:
    _send(train, {"group_id": "g"})
    secret = _named("a").secret
    # A judge that quotes it is a bug of ours; the sender's answer has no room for its logs.
    _judge(_named("a"), logs=(RankLog(rank=0, text=f"inputs {secret}"),))
    assert secret not in json.dumps(_results(train, "a"))
    assert "inputs" not in json.dumps(_results(train, "a"))
    one = _named("a")
    assert (one.secret, one.source) == ("", "")


def test_a_groups_secret_ends_with_it(train: Send, settings: LazySettings) -> None:
    _send(train, {"group_id": "g"})
    secret = _named("a").secret
    TrainingGroup.objects.update(created_at=timezone.now() - timedelta(hours=2))
    hosts.sweep()
    assert Judgement.objects.count() == 1
    _send(train, {"id": "b", "group_id": "g"})
    assert _named("b").secret != secret


def test_a_group_has_a_most(train: Send, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leaderboard.submissions.training.MOST_OF_A_GROUP", 2)
    told = _send(train, *({"id": f"g{n}", "group_id": "g"} for n in range(3)))["items"]
    assert [one["status"] for one in told] == ["accepted", "accepted", "refused"]
    assert told[2]["error"]["code"] == "group_full"


def test_judgements_in_flight_are_bounded_and_requests_are_not(
    train: Send, settings: LazySettings
) -> None:
    settings.PKB_TRAINING_IN_FLIGHT = 2
    _send(train, {"id": "a"}, {"id": "b"})
    answer = train(BATCH, {"items": [ITEM | {"id": "c"}]})
    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "training_quota")
    assert answer["Retry-After"]
    _send(train, {"id": "a"})
    _judge(_named("a"))
    _send(train, {"id": "c"})


def test_it_comes_after_every_run_and_has_its_turn_then(
    train: Send, run: Run, bells: Bells
) -> None:
    say_hello()
    bells.clear()
    _send(train, {})
    assert [one for one, _ in bells] == [_named("a").pk]
    with pytest.raises(OthersFirst):
        _lease(_named("a"))
    claim(run)
    _lease(_named("a"))


def test_a_host_holds_no_more_than_its_share_of_both(train: Send, run: Run) -> None:
    claim(run)
    _send(train, {})
    by = claimant(_named("a").as_run())
    by.token.groups = 1
    with pytest.raises(HoldsEnough):
        training.lease(_named("a").pk, by)


def test_groups_of_an_account_are_bounded(train: Send, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leaderboard.submissions.training.MOST_GROUPS", 1)
    _send(train, {"group_id": "g"})
    answer = train(BATCH, {"items": [ITEM | {"id": "b", "group_id": "h"}]})
    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "training_groups")
    assert not Judgement.objects.filter(key="b").exists()


def test_turns_go_to_whoever_used_the_judge_least(train: Send, other: User) -> None:
    _send(train, *({"id": f"mine-{n}"} for n in range(5)))
    _send(train, {"id": "theirs"}, user=other)
    _lease(_named("mine-0"))
    long_ago = timezone.now() - timedelta(minutes=5)
    Judgement.objects.filter(key="mine-0").update(started_at=long_ago)
    assert Judgement.objects.queued().next_ids(1) == [_named("theirs").pk]
    _judge(_named("theirs"))
    _send(train, {"id": "theirs-2"}, user=other)
    assert Judgement.objects.queued().next_ids(1) == [_named("theirs-2").pk]


def test_one_whose_host_went_silent_is_judged_again_and_three_times_at_most(train: Send) -> None:
    _send(train, {})
    for _ in range(3):
        _lease(_named("a"))
        Judgement.objects.update(lease_until=timezone.now() - timedelta(seconds=9))
        hosts.sweep()
    answer = _results(train, "a")["results"][0]
    assert (answer["status"], answer["report"]["verdict"]) == ("failed", "infra_error")
    with pytest.raises(LeaseLost):
        _lease(_named("a"))


def test_who_lost_the_lease_reports_nothing(train: Send) -> None:
    _send(train, {})
    lost = _lease(_named("a"))
    Judgement.objects.update(lease_until=timezone.now() - timedelta(seconds=9))
    held = _lease(_named("a"))
    with pytest.raises(LeaseLost):
        training.finish(_named("a").pk, lost, _report(_named("a")))
    with pytest.raises(LeaseLost):
        training.heartbeat(_named("a").pk, Holding(lease_token=held.lease_token, token_id=0))
    training.heartbeat(_named("a").pk, held)
    training.finish(_named("a").pk, held, _report(_named("a")))


def test_a_report_that_does_not_fit_is_not_believed(train: Send) -> None:
    _send(train, {})
    holding = _lease(_named("a"))
    report = _report(_named("a"))
    report["kernel_digest"] = "0" * 64
    with pytest.raises(RequestError, match="another kernel"):
        training.finish(_named("a").pk, holding, report)
    assert _named("a").status == "queued"


def test_a_disabled_host_is_heard_no_more(train: Send) -> None:
    _send(train, {})
    _lease(_named("a"))
    WorkerHost.objects.update(state=HostState.DISABLED)
    with pytest.raises(OutOfService):
        training.check_enabled(_named("a").pk)


def test_results_and_what_nobody_judges_expire(train: Send, settings: LazySettings) -> None:
    _send(train, {"id": "done"}, {"id": "waits"}, {"id": "new"})
    _judge(_named("done"))
    old = timezone.now() - timedelta(seconds=settings.PKB_TRAINING_KEEP_S + 9)
    Judgement.objects.filter(key="done").update(finished_at=old)
    Judgement.objects.filter(key="waits").update(created_at=old)
    say_hello(HELLO)
    assert [one.key for one in Judgement.objects.all()] == ["new"]


def test_time_is_timed(train: Send) -> None:
    _send(train, {"tier": "time"})
    assert _named("a").placement == "full"
    _judge(_named("a"))
    report: dict[str, Any] = _results(train, "a")["results"][0]["report"]
    assert report["speedup_low"] <= report["speedup"] <= report["speedup_high"]


def test_reports_are_typed(train: Send) -> None:
    """The names that docs/python.md promises."""
    _send(train, {})
    _judge(_named("a"), Verdict.OUTPUT_MISMATCH, message="wrong", ranks=(1,))
    report = _results(train, "a")["results"][0]["report"]
    assert set(report) == set(training_report(factory.make_report(_named("a").as_run())))
