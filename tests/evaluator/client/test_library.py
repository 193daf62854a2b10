"""`import pkb`: the benchmark, rewards, and judgements in flight at a site that may be away."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.client import rewards
from evaluator.client.benchmark import Benchmark
from evaluator.client.failures import Misused, NoAnswer, Refused
from evaluator.client.flights import BATCH, CANCEL, Flight
from evaluator.client.items import Item, as_item, extract, result_of
from evaluator.client.judge import BaseJudge, Judge
from evaluator.client.transport import Answer
from evaluator.diagnosis.scan import PATTERNS
from evaluator.messages.report import Phase, Verdict
from problems.statement import listed

CODE = "def solution(tensor):\n    return tensor\n"
VERDICTS = [str(verdict) for verdict in Verdict]
OK = {"verdict": "ok", "flags": []}
TIMED = {**OK, "speedup": 1.5, "speedup_low": 1.2, "utilisation": 0.4}


def test_the_benchmark_is_whole_and_says_what_is_near() -> None:
    bench = Benchmark()
    assert len(bench) == 87
    assert [each.number for each in bench.values()] == list(range(1, 88))
    assert bench[13] is bench["gemm_allreduce"] is bench["13"]
    with pytest.raises(KeyError, match="did you mean allreduce"):
        bench["all_reduce"]
    assert sum(map(len, bench.categories.values())) == 87


@pytest.mark.parametrize("backend", ["pytorch", "triton", "cuda", "parallelkittens"])
def test_every_problem_has_a_prompt_and_costs(backend: str) -> None:
    for each in Benchmark().values():
        text = each.prompt(backend=backend, hardware="h200x4")
        assert listed(each.statement) in text
        assert each.signature in text
        assert each.cost("tiny", each.world_sizes[0]).hbm_bytes > 0
    with pytest.raises(ValueError, match="no hardware"):
        each.prompt(hardware="toaster")


def test_usual_settings_of_a_prompt_are_those_of_the_hardware() -> None:
    one = Benchmark()["allreduce"]
    assert one.prompt("cuda") == one.prompt("cuda", "h200x4", 4, "standard", "bfloat16")
    assert one.prompt("pytorch", "cpu") == one.prompt("pytorch", "cpu", 8, "tiny", "float32")


def test_an_answer_gives_its_kernel_as_the_harness_finds_it() -> None:
    assert extract(f"Here:\n```python\n{CODE}```") == CODE
    assert extract("No idea.") is None
    assert extract(f"```python\n{CODE}", is_cut=True) is None


@given(
    st.sampled_from(VERDICTS),
    st.none() | st.sampled_from([str(phase) for phase in Phase]),
    st.none() | st.floats(1e-6, 1e6),
    st.integers(0, 100),
)
def test_a_reward_is_none_or_from_0_to_1_and_never_0_for_a_fault_of_ours(
    verdict: str, phase: str | None, number: float | None, passed: int
) -> None:
    report: dict[str, Any] = {
        **{"verdict": verdict, "phase": phase, "trials_passed": passed, "flags": []},
        **{"speedup_low": number, "utilisation": number},
    }
    for function in rewards.PRESETS.values():
        value = function(report)
        if verdict in ("infra_error", "host_unsupported", "cancelled"):
            assert value is None
        elif verdict != "ok":
            assert value is not None
            assert 0 <= value < 0.5
        else:
            assert value is None or 0 <= value <= 1


def test_presets_say_what_they_are_documented_to() -> None:
    wrong = {"verdict": "output_mismatch", "phase": "verify", "trials_passed": 3}
    assert [rewards.correct(each) for each in (OK, wrong)] == [1, 0]
    assert [rewards.fast(each) for each in (OK, TIMED, wrong)] == [None, 1, 0]
    assert rewards.fast({**TIMED, "speedup_low": 0.99}) == 0
    assert [rewards.roofline(each) for each in (OK, TIMED, wrong)] == [None, 0.4, 0]
    assert rewards.roofline({**TIMED, "utilisation": 1.05}) == 1
    assert [rewards.shaped(each) for each in (OK, TIMED)] == [0.5, pytest.approx(0.65)]
    assert rewards.shaped(wrong) == pytest.approx(0.25)
    assert rewards.shaped({"verdict": "build_error", "phase": "build"}) == 0


def test_what_is_suspicious_is_a_flag_of_the_judge_and_has_no_reward_unless_asked() -> None:
    assert set(rewards.HARMLESS) <= set(PATTERNS)
    report = {"verdict": "ok", "flags": ["uses_nccl", "static:ctypes", "static:cuda-graph"]}
    item = Item("allreduce", CODE, "a")
    plain = result_of(item, report, rewards.correct, rewards_flagged=False)
    assert (plain.reward, plain.flags) == (None, ("static:ctypes",))
    assert result_of(item, report, rewards.correct, rewards_flagged=True).reward == 1


def test_an_item_names_all_its_faults() -> None:
    with pytest.raises(ValueError, match=r"tier 'rank'.*; id 'a b'.*; group_id ''"):
        Item("allreduce", CODE, id="a b", tier="rank", group_id="")
    with pytest.raises(ValueError, match="no reward, sourse"):
        as_item({"problem": "allreduce", "sourse": CODE, "reward": 1})


class FakeSite:
    """Judges at once; fails as its script says; holds no more than `most` at a time."""

    def __init__(self, *script: Exception, most: int = 64) -> None:
        self.script, self.most = list(script), most
        self.asked: list[tuple[str, Any]] = []
        self.there: dict[str, Mapping[str, Any]] = {}
        self.held = 0

    def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        asked = json.loads(body)
        self.asked.append((path, asked))
        if self.script:
            error = self.script.pop(0)
            if not isinstance(error, KeyError):
                raise error
            self.there.clear()  # it has forgotten everything
        return Answer(200, json.dumps(self._answer(path, asked)).encode())

    def _answer(self, path: str, asked: Any) -> dict[str, Any]:
        if path == BATCH:
            new = {item["id"]: item for item in asked["items"]}
            self.there |= {key: {**OK, "feedback": item["source"]} for key, item in new.items()}
            self.held = max(self.held, len(new))
            told = [{"id": key, "status": "accepted"} for key in new]
            for item in asked["items"]:
                if item["problem"] == "none":
                    error = {"code": "unknown_problem", "message": "No.", "fix": "Look."}
                    told[[one["id"] for one in told].index(item["id"])] = {
                        **{"id": item["id"], "status": "refused"},
                        "error": error,
                    }
            return {"items": told, "in_flight": self.most}
        if path == CANCEL:
            return {"cancelled": 0}
        found = [key for key in asked["ids"] if key in self.there]
        results = [{"id": key, "status": "done", "report": self.there[key]} for key in found]
        return {"results": results, "waiting": [], "unknown": [*set(asked["ids"]) - set(found)]}


class FakeJudge(BaseJudge):
    def __init__(self, site: FakeSite, most: int = 8) -> None:
        super().__init__("correct", False)
        self.site, self.most = site, most

    def _flight(self) -> Flight:
        return Flight(self.site, self.most, 60.0)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)


def _items(count: int) -> Iterator[dict[str, Any]]:
    return (
        {"problem": "allreduce", "source": f"{CODE}# {n}\n", "id": f"i{n}"} for n in range(count)
    )


async def _later(count: int) -> AsyncIterator[dict[str, Any]]:
    for item in _items(count):
        await asyncio.sleep(0)
        yield item


async def _all(judge: BaseJudge, items: Any) -> list[str]:
    return [result.id async for result in judge.stream(items)]


@pytest.mark.parametrize("items", [_items, _later], ids=["iterable", "async"])
def test_every_item_has_one_result_in_any_order(items: Callable[[int], Any]) -> None:
    found = asyncio.run(_all(FakeJudge(FakeSite()), items(50)))
    assert sorted(found) == sorted(f"i{n}" for n in range(50))
    assert len({*found}) == len(found)


def test_sync_twins_do_the_same_and_a_batch_keeps_its_order() -> None:
    judge = FakeJudge(FakeSite())
    assert {result.id for result in judge.stream_sync(_items(50))} == {f"i{n}" for n in range(50)}
    results = judge.batch_sync(
        {"problem": "allreduce", "source": f"{CODE}# {n}\n"} for n in range(9)
    )
    assert [result.feedback for result in results] == [f"{CODE}# {n}\n" for n in range(9)]
    again = asyncio.run(judge.batch(_items(3)))
    assert [(result.id, result.reward) for result in again] == [("i0", 1), ("i1", 1), ("i2", 1)]


def test_items_are_taken_only_as_there_is_room_for_them() -> None:
    taken = 0

    def items() -> Iterator[dict[str, Any]]:
        nonlocal taken
        for item in _items(100):
            taken += 1
            yield item

    stream = FakeJudge(FakeSite(), most=4).stream_sync(items())
    next(stream)
    assert taken <= 5
    stream.close()  # type: ignore[attr-defined]


def test_a_site_that_is_away_or_full_is_asked_the_same_again() -> None:
    full = Refused("full", code="training_quota", http_status=429, retry_after_s=1)
    site = FakeSite(NoAnswer("gone"), full, NoAnswer("gone again"))
    assert len(FakeJudge(site).batch_sync(_items(2))) == 2
    sent = [body for path, body in site.asked if path == BATCH]
    assert sent[0] == sent[1] == sent[2]


def test_what_the_site_forgot_is_sent_again_and_given_up_at_last() -> None:
    site = FakeSite(NoAnswer("x"), KeyError())
    assert [result.verdict for result in FakeJudge(site).batch_sync(_items(1))] == ["ok"]
    site = FakeSite()
    site.there = _Forgetful()
    (result,) = FakeJudge(site).batch_sync(_items(1))
    assert (result.verdict, result.reward) == ("lost", None)


class _Forgetful(dict[str, Any]):
    def __ior__(self, other: Any) -> _Forgetful:  # type: ignore[override,misc]
        return self


def test_one_that_is_refused_has_no_reward_and_one_without_a_kernel_has_0() -> None:
    given: list[dict[str, Any]] = [
        {"problem": "none", "source": CODE, "id": "refused"},
        {"problem": "allreduce", "source": None, "id": "empty"},
        {"problem": "allreduce", "source": "x = 1\n", "id": "other"},
        {"problem": "allreduce", "source": "def solution(): '\ud800'", "id": "half"},
    ]
    found = {result.id: result for result in FakeJudge(FakeSite()).batch_sync(given)}
    assert {key: (each.verdict, each.reward) for key, each in found.items()} == {
        "refused": ("refused", None),
        "empty": ("missing_entry_point", 0),
        "other": ("missing_entry_point", 0),
        "half": ("build_error", 0),
    }


def test_a_stream_that_is_left_cancels_what_is_out() -> None:
    site = FakeSite()

    async def first() -> None:
        stream = FakeJudge(site, most=4).stream(_items(20))
        async for _ in stream:
            break
        await stream.aclose()  # type: ignore[attr-defined]

    asyncio.run(first())
    paths = [path for path, _ in site.asked]
    assert len([path for path in paths if path == BATCH]) < 20


def test_no_answer_in_time_is_a_failure() -> None:
    judge = FakeJudge(FakeSite(*[NoAnswer("gone", is_passing=False)] * 9))
    with pytest.raises(NoAnswer):
        judge.batch_sync(_items(1))
    with pytest.raises(NoAnswer):
        asyncio.run(_all(judge, _items(1)))


def test_an_answer_of_another_site_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[Any] = [[], {"items": 1}, {"items": [{"id": "x"}], "in_flight": 9}]
    for answer in answers:
        site = FakeSite()
        monkeypatch.setattr(site, "_answer", lambda *_, said=answer: said)
        with pytest.raises(NoAnswer, match="does not know"):
            FakeJudge(site).batch_sync(_items(1))


def test_a_site_that_allows_fewer_is_sent_fewer() -> None:
    site = FakeSite(most=3)
    assert len(FakeJudge(site, most=64).batch_sync(_items(100))) == 100
    sent = [len(body["items"]) for path, body in site.asked if path == BATCH]
    assert (sent[0], sent[-1]) == (16, 3)


def test_a_judge_needs_a_token_and_keeps_it_off_open_lines() -> None:
    with pytest.raises(Misused, match="no token"):
        Judge("https://site.example")
    with pytest.raises(Misused, match="not encrypted"):
        Judge("http://site.example", "token")
    with pytest.raises(ValueError, match="no reward 'best'"):
        Judge("https://site.example", "token", reward="best")
    assert "secret-token" not in repr(vars(Judge("https://site.example", "secret-token")).keys())
