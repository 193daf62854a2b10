"""What leaves a GPU while inputs are sealed: how it is counted, and when it is asked for."""

from __future__ import annotations

import contextlib
import itertools
import secrets
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from evaluator.host import links
from evaluator.host.gpus import Gpu
from evaluator.host.links import Sent, counters, sent_since
from evaluator.judge import timed_phase
from evaluator.judge.early_sends import (
    MOST_NVLINK_BYTES,
    MOST_PCIE_BYTES,
    MOST_WAIT_S,
    PCIE_CALLS,
    Watch,
    watching,
)
from evaluator.messages.faults import EvaluatorError, Fault
from evaluator.messages.report import Verdict
from evaluator.timing.pace import WATCHED_OF

GPUS = [
    Gpu(index=i, minor=i, uuid=f"GPU-{i}", name="NVIDIA H200", memory_bytes=1) for i in range(2)
]


class Driver:
    """Counts as NVML does: KiB over NVLink, bytes over PCIe."""

    NVML_SUCCESS, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, NVML_FI_DEV_PCIE_COUNT_TX_BYTES = 0, 1, 2

    def __init__(self, error: int = 0) -> None:
        self.counts, self.error = {"GPU-0": [0, 0], "GPU-1": [0, 0]}, error

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        return uuid

    def nvmlDeviceGetFieldValues(self, handle: str, fields: list[Any]) -> list[Any]:
        assert fields == [(1, 0xFFFFFFFF), (2, 0)]
        values = (SimpleNamespace(ullVal=count) for count in self.counts[handle])
        return [SimpleNamespace(nvmlReturn=self.error, value=value) for value in values]


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    own = Driver()
    monkeypatch.setattr(links, "session", lambda: _yielding(own))
    return own


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "randbelow", lambda _: 0)


def _yielding(own: object) -> Any:
    return contextlib.nullcontext(own)


def test_bytes_are_counted_by_gpu_and_way(driver: Driver) -> None:
    with counters(GPUS) as count:
        driver.counts = {"GPU-0": [3, 5], "GPU-1": [0, 7]}
        assert count() == [{"NVLink": 3072, "PCIe": 5}, {"NVLink": 0, "PCIe": 7}]


def test_a_count_that_wraps_is_told() -> None:
    before: Sent = {"NVLink": (2**32 - 1) << 10, "PCIe": 2**32 - 10}
    assert sent_since(before, {"NVLink": 1 << 10, "PCIe": 6}) == {"NVLink": 2048, "PCIe": 16}


def test_a_count_that_was_set_back_is_too_much(driver: Driver, always: None) -> None:
    driver.counts = {"GPU-0": [9, 0], "GPU-1": [9, 0]}
    with watching(GPUS) as watch:
        watch.begin()
        driver.counts["GPU-1"][0] = 0
        watch.put([0, 0])
        with pytest.raises(Fault, match="rank 1 sent"):
            watch.check()


def test_a_driver_that_does_not_count_is_our_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "session", lambda: _yielding(Driver(error=3)))
    with watching(GPUS) as watch, pytest.raises(EvaluatorError, match="does not count"):
        watch.begin()


def test_without_gpus_nothing_is_watched(always: None) -> None:
    with watching(()) as watch:
        watch.is_due = True
        assert watch.begin() is False
        assert watch.is_prompt(time.monotonic() + 1e3)


@pytest.mark.parametrize(
    ("counts", "received", "calls"),
    [
        ([MOST_NVLINK_BYTES >> 10, 0], 0, None),
        ([(MOST_NVLINK_BYTES >> 10) + 1, 0], 0, 1),
        ([0, MOST_PCIE_BYTES], 0, None),
        ([0, MOST_PCIE_BYTES + 1], 0, PCIE_CALLS),
        ([0, MOST_PCIE_BYTES + 105], 1000, None),
        ([0, MOST_PCIE_BYTES + 106], 1000, PCIE_CALLS),
    ],
)
@pytest.mark.usefixtures("always")
def test_a_gpu_that_sends_early_is_named(
    driver: Driver,
    monkeypatch: pytest.MonkeyPatch,
    counts: list[int],
    received: int,
    calls: int | None,
) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 1.0)
    with watching(GPUS) as watch:
        for number in range(1, 6):
            driver.counts["GPU-1"] = [0, 0]
            assert watch.begin()
            watch.put([0, received])
            driver.counts["GPU-1"] = counts
            if number != calls:
                watch.check()
                continue
            with pytest.raises(Fault) as found:
                watch.check()
            assert (found.value.verdict, found.value.cause, found.value.ranks) == (
                *(Verdict.PROTOCOL_VIOLATION, "sent_early", (1,)),
            )
            break
        assert watch.calls == (calls or 5)


def test_a_call_that_is_queued_late_shows_nothing_and_is_not_timed(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with watching(GPUS) as watch:
        watch.is_due = True
        assert watch.begin()
        now[0] = 5.0  # the judge may take its time
        watch.put([0, 0])
        now[0] += MOST_WAIT_S
        assert watch.is_prompt(now[0])
        now[0] += 0.001
        assert not watch.is_prompt(now[0])
        watch.check()
    assert watch.calls == 0


def test_one_call_in_five_is_watched_and_none_is_foretold() -> None:
    watch = Watch(lambda: [{"NVLink": 0, "PCIe": 0}])
    drawn = [watch.begin() for _ in range(2000)]
    assert 300 < sum(drawn) < 500
    pairs = [one and other for one, other in itertools.pairwise(drawn)]
    assert 40 < sum(pairs) < 130


class Recorder:
    """Stands for the oracle, the watch and the ranks of a round, and notes what is asked of them;
    the second call is watched, and the gate of the last opens late."""

    warm_up_calls, side = (0, 1), "submission"

    def __init__(self) -> None:
        self.events = list[tuple[str, object]]()

    def clear(self, *given: object) -> None:
        self.events.append(("clear", ()))

    def parts(self, batch: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        yield batch[:2]
        yield batch[2:]

    def seal(self, side: str, keys: list[dict[int, int]]) -> None:
        self.events.append(("seal", tuple(keys[0])))

    def warm_up(self, slots: tuple[int, ...]) -> None:
        self.events.append(("warm up", slots))

    def begin(self) -> bool:
        self.events.append(("begin", ()))
        return self.events.count(("begin", ())) == 2

    def settle(self, side: object, slot: int) -> None:
        self.events.append(("settle", slot))

    def put(self, *given: Any) -> list[int]:
        self.events.append(("put", given[-1]))
        return [0]

    def launch(self, side: object, slots: tuple[int, ...], *given: Any, **how: Any) -> object:
        self.events.append(("launch", slots))
        if how["at_gate"]:
            how["at_gate"]()
        return SimpleNamespace(us=1.0, is_ahead=True, opened_s=4.0 if slots == (3,) else 1.0)

    def is_prompt(self, opened_s: float) -> bool:
        return opened_s < 2.0

    def check(self) -> None:
        self.events.append(("check", ()))


def test_inputs_of_a_call_are_there_only_once_the_one_before_is_done_and_a_watch_began(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: Any = Recorder()
    context: Any = SimpleNamespace(oracle=seen, job=SimpleNamespace(world_size=1))
    monkeypatch.setattr(timed_phase, "launch", seen.launch)
    monkeypatch.setattr(timed_phase, "settle", seen.settle)
    monkeypatch.setattr(timed_phase, "_checked", lambda *given: [])
    own = timed_phase._gated_round(context, seen, seen, (4, 2, 3), ahead_ms=30)
    assert seen.events == [
        *(("clear", ()), ("seal", (4, 2))),
        *(("warm up", (1,)), ("begin", ()), ("put", (4,)), ("put", [0]), ("settle", 0)),
        *(("launch", (4,)), ("warm up", (1,)), ("begin", ()), ("put", (2,)), ("put", [0])),
        *(("settle", 0), ("launch", (2,)), ("check", ()), ("clear", ()), ("seal", (3,))),
        *(("warm up", (1,)), ("begin", ()), ("put", (3,)), ("put", [0]), ("settle", 0)),
        ("launch", (3,)),
    ]
    assert own.us == [1.0]


def test_what_is_allowed_hides_little() -> None:
    assert MOST_NVLINK_BYTES <= 4 << 10
    assert WATCHED_OF <= 5
