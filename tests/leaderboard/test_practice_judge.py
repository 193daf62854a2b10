"""A model's kernels, judged by this site while it writes: what it hears, and what it never may."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluator.generate.__main__ import main
from evaluator.messages.feedback import feedback
from evaluator.messages.report import Environment, RankLog, Report, Trial, Verdict
from leaderboard.kit.doorbells import Bell
from leaderboard.models import ApiToken, Problem, Run, Scope, Submission
from tests.evaluator.generate.server import Body, Served, said, serving
from tests.leaderboard import factory
from tests.leaderboard.uploads import GOOD

pytestmark = pytest.mark.django_db(transaction=True)
HIDDEN = (
    "6151",
    "3079",
    "977.5",
    "hidden shape",
    "secret-host",
    "driver 580.1",
    "0.61803",
    "16411",
)


def _report(run: Run) -> Report:
    """Of a wrong kernel: inputs, host and log have names that occur nowhere else."""
    wrong = factory.make_trial(1, passed=False)
    checks = tuple(
        replace(check, elements=16411, mismatched=bool(check.mismatched) * 4103)
        for check in wrong.checks
    )
    return factory.make_report(
        run,
        Verdict.OUTPUT_MISMATCH,
        message="trial 1 (hidden shape 6151 x 3079, scale 977.5): 4103 of 16411 elements",
        evidence="RuntimeError: tensor([0.61803, 0.61803]) differs",
        cause="values",
        ranks=(1,),
        trials=(Trial(trial=1, m=6151, n=3079, note="hidden shape, scale 977.5", checks=checks),),
        environment=Environment(
            hardware="2 x CPU", host="secret-host", versions={"driver": "driver 580.1"}
        ),
        logs=(RankLog(rank=0, text="input 0.61803"),),
    )


@pytest.fixture
def judged(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> list[Report]:
    """What was found of every run, at once when its bell is rung: there is no worker."""
    found: list[Report] = []

    def ring(bells: Sequence[Bell]) -> None:
        for run_id, _ in bells:
            run = Run.objects.select_related("kernel__problem", "kernel__submission").get(pk=run_id)
            found.append(_report(run))
            factory.finish(run, found[-1])

    monkeypatch.setattr("leaderboard.submissions.queue.ring_later", ring)
    return found


@pytest.fixture
def token(db: None, monkeypatch: pytest.MonkeyPatch) -> str:
    """A token of `owner`, where the command line looks for it."""
    owner = factory.make_user("owner")
    text = ApiToken.objects.issue(scope=Scope.SUBMIT, name="test", owner=owner)[1]
    monkeypatch.setenv("PKB_TOKEN", text)
    monkeypatch.setenv("OPENAI_API_KEY", "a key of the model's server")
    return text


def _agent(body: Body) -> Any:
    """Write two kernels, have both judged and the profile of the last shown, and end."""
    turn = sum(message["role"] == "assistant" for message in body["messages"])
    sources = [GOOD.decode(), GOOD.decode() + "# again\n"]
    write = [("write", json.dumps({"source": source})) for source in sources]
    plays = [(write[0], ("judge", "{}")), (write[1], ("judge", "{}"), ("profile", "{}"))]
    return said(None, calls=plays[turn] if turn < 2 else (("done", "{}"),))


def _generate(folder: Path, model: Served, site: str, command: str = "run") -> int:
    own = ("--model", "m", "--problems", "1", "--harness", "agentic", "--judge", "site")
    words = own if command == "run" else ()
    return main([command, str(folder), *words, "--base-url", model.url, "--site", site])


def _results(body: Body) -> list[str]:
    """What the tools answered, in the last conversation that the model saw."""
    return [message["content"] for message in body["messages"] if message["role"] == "tool"]


def test_a_model_hears_the_verdict_and_nothing_of_the_inputs(
    live_server: Any,
    judged: list[Report],
    token: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with serving(_agent) as model:
        assert _generate(tmp_path / "out", model, live_server.url) == 0
        asked = len(model.asked)
        assert _generate(tmp_path / "out", model, live_server.url, "resume") == 0
        assert len(model.asked) == asked

    runs = Run.objects.select_related("kernel__submission").order_by("created_at")
    assert [run.kernel.source.text for run in runs] == [GOOD.decode(), GOOD.decode() + "# again\n"]
    made = Submission.objects.all()
    assert {(one.is_practice, one.visibility, str(one.owner)) for one in made} == {
        (True, "private", "owner")
    }
    assert [str(run.hardware_id) for run in runs] == ["cpu", "cpu"]
    assert not Run.objects.counted().exists()

    results = _results(model.asked[-1])
    assert [text for text in results if text.startswith("verdict")] == [
        feedback(report).text for report in judged
    ]
    assert "25 % of sum of rank 1 (output_mismatch), up to 12 tolerances off" in results[1]
    shown = json.dumps(model.asked)
    assert not [text for text in HIDDEN if text in shown]
    files = [path.read_text() for path in (tmp_path / "out").rglob("*") if path.is_file()]
    raw = "".join(files) + "".join(capsys.readouterr())
    # Moments and digests hold any four digits now and then.
    written = re.sub(r'"(?:at|began)": [\d.]+|[0-9a-f-]{32,}', "", raw)
    assert not [text for text in HIDDEN if text in written]
    assert token not in raw + shown


@pytest.mark.usefixtures("token")
def test_without_a_token_nothing_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("PKB_TOKEN")
    with serving(_agent) as model:
        assert _generate(tmp_path / "out", model, "http://127.0.0.1:1") == 2
    assert "PKB_TOKEN holds no token" in capsys.readouterr().err
    assert not model.asked
