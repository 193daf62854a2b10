"""A run that is killed at any moment goes on as if nothing had happened."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.generate import running
from evaluator.generate.budget import Budget, Purse
from evaluator.generate.exchange import Ask, Reply
from evaluator.generate.journal import Diverged, Event, appender, read_events
from evaluator.generate.packing import archive
from evaluator.generate.plan import Plan, RunFiles, attempts
from evaluator.generate.running import begin, purse_of, session
from tests.evaluator.generate.scripted import (
    FENCED,
    KERNEL,
    ScriptedJudge,
    ScriptedModel,
    go_on,
    lay_out,
    plan,
    reply,
)

WORDS = ("--harness", "agentic", "--problems", "1,13", "--samples", "2", "--steps", "3")
WRONG = KERNEL.replace("clone()", "clone() + 1")


class Killed(BaseException):
    """Ends everything, as a kill does: nobody catches it."""


def _write(source: str) -> tuple[str, str]:
    return "write", json.dumps({"source": source})


def _script(ask: Ask) -> Reply:
    """Writes a wrong kernel, has it judged, mends it, looks at the profile, ends."""
    answers = sum(message.role == "assistant" for message in ask.messages)
    return [
        reply("first", _write(WRONG), ("judge", "{}")),
        reply("", _write(KERNEL), ("diff", '{"step": 1}'), ("judge", "{}")),
        reply("", ("profile", "{}"), ("read", '{"topic": "step_1"}')),
        reply("", ("done", "{}")),
    ][answers]


def _model() -> ScriptedModel:
    return ScriptedModel(script=_script)


def _judge() -> ScriptedJudge:
    return ScriptedJudge(verdict=lambda source: "ok" if source == KERNEL else "output_mismatch")


def _whole() -> tuple[bytes, int]:
    """What a run makes that nobody disturbs, and how many events it has."""
    with TemporaryDirectory() as folder:
        own = plan(*WORDS)
        place = lay_out(Path(folder), own)
        assert all(
            one.is_ended and one.right and one.fast for one in go_on(place, own, _model(), _judge())
        )
        return archive(place, own), sum(len(read_events(place.events(*w))) for w in attempts(own))


WHOLE, EVENTS = _whole()


def _killing(after: int, half: bool) -> object:
    """An appender that dies once so many events are written, maybe in the middle of one more."""
    left = [after]

    def make(path: Path, scrub: object) -> object:
        write = appender(path, lambda value: value)

        def written(event: Event) -> Event:
            if left[0] == 0:
                if half:
                    with path.open("ab") as file:
                        file.write(b'{"kind": "repl')
                raise Killed
            left[0] -= 1
            return write(event)

        return written

    return make


@settings(max_examples=15)
@given(kills=st.lists(st.tuples(st.integers(0, EVENTS), st.booleans()), max_size=3))
def test_after_kills_anywhere_the_archive_is_the_same_and_nothing_is_asked_twice(
    kills: list[tuple[int, bool]],
) -> None:
    own, answered, asked = plan(*WORDS), Counter[str](), Counter[str]()
    with TemporaryDirectory() as folder:
        place = lay_out(Path(folder), own)
        for after, half in kills:
            model = _model()
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(running, "appender", _killing(after, half))
                with contextlib.suppress(Killed):
                    go_on(place, own, model, _judge())
            asked += Counter(model.asked)
            answered = _answered(place, own)
        model = _model()
        outcomes = go_on(place, own, model, _judge())
        assert all(one.is_ended for one in outcomes)
        assert archive(place, own) == WHOLE
        # Of what a kill left without an answer, no more than one ask a kill is asked again.
        again = (asked + Counter(model.asked)) - _answered(place, own)
        assert again.total() <= len(kills)
        assert (Counter(model.asked) + answered) == _answered(place, own)


def _answered(place: RunFiles, own: Plan) -> Counter[str]:
    events = [event for which in attempts(own) for event in read_events(place.events(*which))]
    return Counter(event["key"] for event in events if event["kind"] == "replied")


def test_a_run_that_has_ended_asks_and_judges_nothing_again(tmp_path: Path) -> None:
    own = plan(*WORDS)
    place = lay_out(tmp_path, own)
    go_on(place, own, _model(), _judge())
    model, judge = _model(), _judge()
    go_on(place, own, model, judge)
    assert not model.asked
    assert not judge.judged


def test_what_another_version_did_is_not_gone_on_with(tmp_path: Path) -> None:
    own = plan("--judge", "none", "--problems", "1")
    place = lay_out(tmp_path, own)
    go_on(place, own, ScriptedModel(script=lambda ask: reply(FENCED)))
    path = place.events(*next(attempts(own)))
    events = read_events(path)
    changed = [{**event, "key": "0" * 64} if "key" in event else event for event in events]
    path.write_text("".join(json.dumps(event) + "\n" for event in changed))
    with pytest.raises(Diverged):
        archive(place, own)


def test_two_processes_do_not_make_the_same_run(tmp_path: Path) -> None:
    place = RunFiles(folder=tmp_path)
    with session(place), pytest.raises(ValueError, match="another process"), session(place):
        pass


def test_hours_of_sessions_that_were_killed_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = plan("--judge", "none", "--problems", "1", "--budget-hours", "1")
    place = lay_out(tmp_path, own)
    for began, ended in ((1000.0, 1900.0), (5000.0, 6700.0)):
        monkeypatch.setattr("time.time", lambda at=began: at)
        begin(place)
        monkeypatch.setattr("time.time", lambda at=ended: at)
        appender(place.events(*next(attempts(own))), lambda v: v)({"kind": "stopped", "at": ended})
    assert purse_of(place, own).left_s == pytest.approx(3600 - 900 - 1700, abs=5)
    assert Purse(Budget(), None).left_s is None
