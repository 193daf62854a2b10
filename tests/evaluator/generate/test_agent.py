"""The loop with tools: what it does with good calls, bad calls and models that go nowhere."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evaluator.generate.agent import DROPPED, MOST_IDLE
from evaluator.generate.attempt_loop import Ended
from evaluator.generate.exchange import Ask, Failed, Reply
from evaluator.generate.packing import replayed
from evaluator.generate.plan import Plan, RunFiles, attempts
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

WORDS = ("--harness", "agentic", "--problems", "1", "--steps", "3")


def write(source: str) -> tuple[str, str]:
    """A call that writes a source."""
    return "write", json.dumps({"source": source})


def _tried(
    folder: Path, *replies: Reply, words: tuple[str, ...] = (), judge: ScriptedJudge | None = None
) -> Ended:
    """What an attempt comes to that hears these replies, then `done`."""
    left: Iterator[Reply] = iter(replies)
    model = ScriptedModel(script=lambda ask: next(left, reply("", ("done", "{}"))))
    return _made(folder, model, plan(*WORDS, *words), judge or ScriptedJudge())


def _made(folder: Path, model: ScriptedModel, own: Plan, judge: ScriptedJudge) -> Ended:
    place = lay_out(folder, own)
    (outcome,) = go_on(place, own, model, judge if own.is_judged else None)
    assert outcome.is_ended
    ended = _replay(place, own)
    assert ended.reason == outcome.reason
    return ended


def _replay(place: RunFiles, own: Plan) -> Ended:
    ended = replayed(place, own, *next(attempts(own)))
    assert ended is not None
    return ended


def _results(ended: Ended) -> list[str]:
    return [message.text for message in ended.messages if message.role == "tool"]


def test_it_writes_judges_reads_and_is_done(tmp_path: Path) -> None:
    judge = ScriptedJudge(verdict=lambda source: "ok" if source == KERNEL else "output_mismatch")
    ended = _tried(
        tmp_path,
        reply("", write("wrong\n"), ("judge", "{}")),
        reply("", write(KERNEL), ("judge", '{"size": "tiny", "ranks": 2}'), ("judge", "")),
        reply("", ("profile", "{}"), ("diff", '{"step": 1}'), ("read", '{"topic": "problem"}')),
        judge=judge,
    )
    assert ended.reason == "done"
    assert [step.source for step in ended.steps] == ["wrong\n", KERNEL]
    results = _results(ended)
    assert results[1] == "verdict: output_mismatch"
    assert results[3] == results[4] == "verdict: ok"
    assert results[5] == "a profile"
    assert "-wrong" in results[6]
    assert "Problem 1" in results[7]
    assert len(judge.judged) == ended.totals.judge_runs == 2
    assert ended.totals.answers == 4
    assert ended.totals.wall_s == 4 * 1.0 + 2 * 2.0


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("shell", '{"command": "cat secrets"}', "no such tool"),  # without --shell
        ("read", '{"topic": "../../run.json"}', "no such topic"),
        ("read", '{"topic": "/etc/passwd"}', "no such topic"),
        ("read", '{"topic": "step_99"}', "no step 99"),
        ("write", '{"source": "x", "path": "../evaluator/evaluate.py"}', "unknown"),
        ("write", '{"source": 5}', "type string"),
        ("write", '{"source": ""}', "empty"),
        ("write", '{"source": "a\\u0000b"}', "NUL"),
        ("write", json.dumps({"source": "x" * 300_000}), "KiB"),
        ("write", "{}", "missing"),
        ("write", '{"source": ', "not JSON"),
        ("write", "[" * 100_000, "not JSON"),
        ("write", '"text"', "not an object"),
        ("write", json.dumps({"source": "x" * (2 << 20)}), "too long"),
        ("judge", "{}", "nothing is written"),
        ("profile", "{}", "nothing is written"),
        ("done", "{}", "nothing is written"),
        ("diff", '{"step": true}', "type integer"),
        ("diff", '{"step": 1}', "nothing is written"),
    ],
)
def test_a_bad_call_is_told_what_is_wrong_and_does_nothing(
    tmp_path: Path, name: str, arguments: str, says: str
) -> None:
    judge = ScriptedJudge()
    ended = _tried(tmp_path, reply("", (name, arguments)), reply("", write(KERNEL)), judge=judge)
    (first, *_) = _results(ended)
    assert first.startswith("error: ")
    assert says in first
    assert len(first) < 300
    assert len(ended.steps) == 1
    assert not judge.judged


@pytest.mark.parametrize(
    "arguments", ['{"size": "large"}', '{"dtype": "int8"}', '{"ranks": 64}', '{"ranks": 4}']
)
def test_no_setting_is_judged_that_the_run_has_not_room_for(tmp_path: Path, arguments: str) -> None:
    judge = ScriptedJudge()
    ended = _tried(tmp_path, reply("", write(KERNEL), ("judge", arguments)), judge=judge)
    assert "must be" in _results(ended)[1]
    assert not judge.judged


def test_diffs_of_hostile_sources_take_no_time(tmp_path: Path) -> None:
    began = time.monotonic()
    many = [
        reply("", write("a\nb\n" * 700)),
        reply("", write("b\na\n" * 700), ("diff", '{"step": 1}')),
    ]
    more = [reply("", write("x\n" * 100_000), ("diff", '{"step": 1}'))]
    ended = _tried(tmp_path, *many, *more)
    assert "not compared" in _results(ended)[-2]
    assert time.monotonic() - began < 20


def _stops() -> list[tuple[str, Callable[[], list[Reply]]]]:
    idle = [reply("hm")] * MOST_IDLE
    refused = [reply("", refusal="I will not"), reply("", finish="content_filter")]
    return [
        ("idle", lambda: idle),
        ("refused", lambda: refused),
        ("stuck", lambda: [reply("", write(KERNEL))] * 3),
        ("steps", lambda: [reply("", ("judge", "{}"))] * 12),
        ("done", lambda: [reply("", write(KERNEL), ("done", '{"note": "good"}'))]),
    ]


@pytest.mark.parametrize(
    ("reason", "replies"), _stops(), ids=lambda v: v if isinstance(v, str) else ""
)
def test_it_stops(tmp_path: Path, reason: str, replies: Callable[[], list[Reply]]) -> None:
    assert _tried(tmp_path, *replies()).reason == reason


def test_calls_beside_a_refusal_are_answered(tmp_path: Path) -> None:
    ended = _tried(tmp_path, reply("", write(KERNEL), refusal="but I will"))
    assert ended.reason == "done"
    assert len(ended.steps) == 1
    calls = [call.id for message in ended.messages for call in message.calls]
    assert calls == [message.call_id for message in ended.messages if message.role == "tool"]


def test_no_more_steps_are_written_than_there_are(tmp_path: Path) -> None:
    many = [reply("", write(f"{KERNEL}# {at}\n")) for at in range(5)]
    ended = _tried(tmp_path, *many)
    assert len(ended.steps) == 3
    assert "no step is left" in _results(ended)[3]


def test_a_kernel_in_the_text_is_written_and_judged(tmp_path: Path) -> None:
    ended = _tried(tmp_path, reply(FENCED))
    assert [step.source for step in ended.steps] == [KERNEL]
    assert any(
        "verdict: ok" in message.text for message in ended.messages if message.role == "user"
    )


def test_without_a_judge_there_are_no_tools_that_ask_it(tmp_path: Path) -> None:
    judge = ScriptedJudge()
    ended = _tried(tmp_path, reply("", write(KERNEL), ("judge", "{}")), words=("--judge", "none"))
    assert "no such tool: use write, diff, read, done" in _results(ended)[1]
    assert not judge.judged


def _narrow(most_chars: int) -> Callable[[Ask], Reply]:
    """A model that reads no more than so much, and writes a new step whenever it can."""

    def script(ask: Ask) -> Reply:
        if sum(len(str(message)) for message in ask.messages) > most_chars:
            raise Failed("context", "too long")
        steps = sum(bool(message.calls) for message in ask.messages)
        return reply("", write(KERNEL + f"# {steps}\n" + "#" * 3000))

    return script


def test_of_a_long_conversation_the_oldest_results_are_dropped(tmp_path: Path) -> None:
    place = lay_out(tmp_path, own := plan(*WORDS))
    start = sum(len(text) for text in (_first(place, own)))
    model = ScriptedModel(script=_narrow(start + 9000))
    ended = _made(tmp_path, model, own, ScriptedJudge())
    assert ended.reason == "steps"
    assert len(ended.steps) == 3
    assert all(message.text != DROPPED for message in ended.messages)


def test_a_conversation_that_cannot_be_shortened_ends(tmp_path: Path) -> None:
    place = lay_out(tmp_path, own := plan(*WORDS))
    start = sum(len(text) for text in (_first(place, own)))
    ended = _made(tmp_path, ScriptedModel(script=_narrow(start + 300)), own, ScriptedJudge())
    assert ended.reason == "context"


def test_a_prompt_that_the_model_cannot_read_is_no_attempt(tmp_path: Path) -> None:
    place = lay_out(tmp_path, own := plan(*WORDS))
    (outcome,) = go_on(place, own, ScriptedModel(script=_narrow(10)), ScriptedJudge())
    assert outcome.reason == "context"
    assert replayed(place, own, *next(attempts(own))) is None


def test_calls_that_stand_in_the_text_are_done(tmp_path: Path) -> None:
    call = json.dumps({"name": "write", "arguments": {"source": KERNEL}})
    done = '<tool_call>{"name": "done", "arguments": {}}</tool_call>'
    ended = _tried(tmp_path, reply(f"<tool_call>{call}</tool_call>"), reply(done))
    assert ended.reason == "done"
    assert [step.source for step in ended.steps] == [KERNEL]
    assert ended.messages[3].role == "user"
    assert ended.messages[3].text.startswith("Result of write:")


def _first(place: RunFiles, own: Plan) -> tuple[str, str]:
    text = json.loads(place.prompt(own.targets[0]).read_text())
    return text["system"], text["user"]
