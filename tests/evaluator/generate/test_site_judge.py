"""A site that judges while a model waits: what is waited for, whose fault is what."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evaluator.evaluate import Cancelled
from evaluator.generate.exchange import Misconfigured
from evaluator.generate.judging import Revision
from evaluator.generate.site_judge import SiteJudge, site_of
from evaluator.messages.codec import encode
from evaluator.messages.faults import EvaluatorError
from evaluator.messages.feedback import Feedback, feedback
from tests.evaluator.client.scripted import RUN, Answer, Asked, run, site
from tests.evaluator.generate.test_judging import PRACTICE
from tests.evaluator.test_feedback import FAILED

TOKEN = "pkb_a-token-that-nobody-may-see"
KERNEL = Revision(source="def solution(x): ...", attempt=2, step=3)
TIMES = {"started_at": "2026-11-25T12:00:00Z", "finished_at": "2026-11-25T12:00:02.5Z"}
TAKEN = Answer(value={"submission": 7, "runs": [{"id": RUN}]}, status=201)
TAKEN_BEFORE = replace(TAKEN, status=200)
DONE, REPORT = Answer(value=run(**TIMES)), Answer(value=encode(FAILED))
AWAY, CUT = Answer(status=503), replace(TAKEN, is_cut=True)
LOST = Answer(value=run(status="failed", verdict="infra_error", message="the host went away"))


def _queued(**values: Any) -> Answer:
    waiting: dict[str, Any] = {
        "status": "queued",
        "waits_for": None,
        "declines": [],
        "waiting_s": 1,
    }
    return Answer(value=run(**{**waiting, **values}))


def _refused(status: int, code: str, **headers: str) -> Answer:
    error = {"code": code, "message": f"{code}, it says.", "fix": "Mend it."}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(value={"error": error}, status=status, headers=named)


def _judge(asked: Asked, waited: list[float] | None = None, *, name: str = "one") -> SiteJudge:
    return SiteJudge(
        site=site_of(asked.url, TOKEN),
        about={"model": "m", "harness": "agentic", "hardware": "cpu"},
        run=name,
        is_over=lambda: False,
        sleep=([] if waited is None else waited).append,
    )


def _found(*answers: Answer, waited: list[float] | None = None) -> tuple[Feedback, Asked]:
    with site(*answers) as asked:
        found, _ = _judge(asked, waited).judge(PRACTICE, KERNEL)
    return found, asked


def _keys(asked: Asked) -> list[str]:
    return [each[2]["Idempotency-Key"] for each in asked.requests if "Idempotency-Key" in each[2]]


def test_a_model_hears_what_a_judge_here_would_tell_it() -> None:
    with site(TAKEN, _queued(), Answer(status=304), DONE, REPORT) as asked:
        found = _judge(asked).judge(PRACTICE, KERNEL)
    assert found == (feedback(FAILED), 2.5)
    assert [(method, path) for method, path, _ in asked.requests] == [
        ("POST", "/api/v1/submissions"),
        *[("GET", f"/api/v1/runs/{RUN}")] * 3,
        ("GET", f"/api/v1/runs/{RUN}/report"),
    ]
    assert {each[2]["Authorization"] for each in asked.requests} == {f"Bearer {TOKEN}"}


@pytest.mark.parametrize(
    ("hindrance", "seconds"),
    [
        (_refused(429, "practice_quota", Retry_After="7"), 7),
        (_refused(429, "throttled", Retry_After="300"), 300),
        (AWAY, 1),
        (CUT, 1),
    ],
)
def test_what_passes_is_waited_for_and_asked_under_the_same_key(
    hindrance: Answer, seconds: float
) -> None:
    waited: list[float] = []
    found, asked = _found(hindrance, hindrance, TAKEN, DONE, REPORT, waited=waited)
    assert found.verdict == "runtime_error"
    assert sum(waited) >= 2 * seconds
    assert max(waited) <= 1
    assert len(_keys(asked)) == 3
    assert len(set(_keys(asked))) == 1


def test_a_site_that_restarts_loses_nothing() -> None:
    found, _ = _found(TAKEN, AWAY, _queued(), replace(DONE, is_cut=True), DONE, AWAY, REPORT)
    assert found == feedback(FAILED)


def test_what_is_the_kernels_fault_is_told_to_the_model() -> None:
    found, _ = _found(_refused(400, "no_entry_point"))
    assert found.text == "verdict: missing_entry_point\nevidence: no_entry_point, it says."
    assert not found.is_right


@pytest.mark.parametrize(
    "answers",
    [
        (_refused(400, "bad_hardware"),),
        (_refused(400, "practice_quota"),),
        (_refused(409, "idempotency_key_reused"),),
        (Answer(status=500),),
        (Answer(raw=b"<html>"),),
        (Answer(value={"runs": []}, status=201),),
        (Answer(value=[1], status=201),),
        (Answer(value={"runs": [{"id": "../../worker/hello"}]}, status=201),),
        (TAKEN, Answer(value={"status": "done"})),
        (TAKEN, DONE, Answer(value={"verdict": "ok"})),
        (TAKEN, DONE, Answer(value={**encode(FAILED), "later": 1, "verdict": "unheard_of"})),
    ],
)
def test_what_is_not_is_our_own(answers: tuple[Answer, ...]) -> None:
    with pytest.raises(EvaluatorError):
        _found(*answers)


@pytest.mark.parametrize("status", [401, 403])
def test_a_token_that_is_not_taken_ends_the_run(status: int) -> None:
    with pytest.raises(Misconfigured) as caught:
        _found(_refused(status, "bad_token"))
    assert TOKEN not in str(caught.value)


def test_our_own_faults_are_tried_again_but_not_for_ever() -> None:
    found, asked = _found(TAKEN, LOST, TAKEN, DONE, REPORT)
    assert found == feedback(FAILED)
    assert len(set(_keys(asked))) == 2
    with site(*[TAKEN, LOST] * 9) as asked, pytest.raises(EvaluatorError, match="went away"):
        _judge(asked).judge(PRACTICE, KERNEL)
    assert len(set(_keys(asked))) == 3


def test_a_run_that_is_gone_on_with_counts_its_own_tries_alone() -> None:
    found, asked = _found(*[TAKEN_BEFORE, LOST] * 4, TAKEN, DONE, REPORT)
    assert found == feedback(FAILED)
    assert len(set(_keys(asked))) == 5


@pytest.mark.parametrize(
    "waiting",
    [
        {"waits_for": "It needs multicast, which no host offers."},
        {"declines": [{"host": "secret", "reason": "It needs multicast"}], "waiting_s": 900},
    ],
)
def test_what_no_host_can_judge_is_told_and_waits_no_longer(waiting: dict[str, Any]) -> None:
    found, asked = _found(TAKEN, _queued(), _queued(**waiting), Answer(value={}))
    assert found.verdict == "host_unsupported"
    assert "It needs multicast" in found.text
    assert "secret" not in found.text
    assert asked.requests[-1][:2] == ("POST", f"/api/v1/runs/{RUN}/cancel")


def test_what_one_host_declined_waits_for_another() -> None:
    declined = _queued(declines=[{"host": "h", "reason": "busy"}], waiting_s=30)
    assert _found(TAKEN, declined, DONE, REPORT)[0] == feedback(FAILED)


def test_no_two_revisions_or_runs_share_a_key() -> None:
    keys = []
    revisions = (KERNEL, KERNEL, replace(KERNEL, step=4), replace(KERNEL, attempt=1))
    for name, practice, revision in (
        *[("one", PRACTICE, revision) for revision in revisions],
        ("one", replace(PRACTICE, world_size=4), KERNEL),
        ("another", PRACTICE, KERNEL),
    ):
        with site(TAKEN, DONE, REPORT) as asked:
            _judge(asked, name=name).judge(practice, revision)
        keys += _keys(asked)
    assert len(keys) == 6
    assert keys[0] == keys[1]
    assert len(set(keys)) == 5


def test_nothing_is_asked_once_the_run_is_over() -> None:
    with site(TAKEN) as asked, pytest.raises(Cancelled):
        replace(_judge(asked), is_over=lambda: True).judge(PRACTICE, KERNEL)
    assert not asked.requests


@pytest.mark.parametrize(
    ("url", "token"),
    [
        ("http://leaderboard.example.org", TOKEN),
        ("https://", TOKEN),
        ("https://user@leaderboard.example.org", TOKEN),
        ("https://leaderboard.example.org", "two words"),
        ("https://leaderboard.example.org", "a\nline"),
    ],
)
def test_what_is_no_site_or_no_token_is_refused(url: str, token: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        site_of(url, token)
