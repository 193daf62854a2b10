"""Ranks that wait for each other are told soon from ranks that are slow."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator.diagnosis import watch
from evaluator.diagnosis.watch import STANDSTILL_S, StandstillWatch
from evaluator.evaluate import evaluate
from evaluator.judge.prefork import PreforkServer
from evaluator.messages.job import Job, Limits
from evaluator.messages.report import RankLog, Report, Verdict
from tests.evaluator.kernel_files import named

TUNED = str(Path(__file__).with_name("tuned_judge.py"))
FILE = '  File "/x/torch/distributed/distributed_c10d.py", line {line} in {function}\n'
DUMP = (
    "Current thread 0x00007f0000000001 (most recent call first):\n{frames}"
    '  File "/tmp/rank0/submission.py", line 9 in solution\n'
    '  File "/x/evaluator/rank/runner.py", line 80 in run_rank\n'
)


@pytest.fixture(scope="module")
def watchful() -> Iterator[PreforkServer]:
    with PreforkServer(warm=True, program=(TUNED, "watchful")) as server:
        yield server


SLOW = {
    "sleeps in one operation": "    time.sleep(6)\n",
    "computes in one operation": (
        "    seen = time.monotonic()\n    while time.monotonic() - seen < 6: pass\n"
    ),
    "one rank is late": "    if dist.get_rank() == 1: time.sleep(6)\n",
    "waits again and again": (
        "    for _ in range(12):\n"
        "        dist.all_reduce(tensor.clone())\n"
        "        if dist.get_rank() == 1: time.sleep(0.5)\n"
    ),
}


@pytest.mark.parametrize("name", ["deadlock", "deadlock_one_leaves", "mismatched_collectives"])
def test_a_deadlock_ends_long_before_the_limit(name: str, watchful: PreforkServer) -> None:
    job = replace(named("misbehaving", name).job, limits=Limits())
    report, took_s = _timed(job, watchful)
    assert report.verdict is Verdict.TIMEOUT
    assert (report.cause or "").startswith("deadlock")
    assert "standing still" in report.message
    assert took_s < job.limits.verify_s / 4


@pytest.mark.parametrize(
    "slowness",
    [
        "one rank is late",
        pytest.param("computes in one operation", marks=pytest.mark.similar),
        pytest.param("sleeps in one operation", marks=pytest.mark.similar),
        pytest.param("waits again and again", marks=pytest.mark.similar),
    ],
)
def test_a_slow_kernel_is_not_ended(slowness: str, watchful: PreforkServer) -> None:
    source = (
        "import time\nimport torch.distributed as dist\ncalls = 0\n"
        "def solution(tensor):\n    global calls\n    calls += 1\n    if calls == 1: slow(tensor)\n"
        "    total = tensor.clone()\n    dist.all_reduce(total)\n    return total\n"
        f"def slow(tensor):\n{SLOW[slowness]}"
    )
    report, _ = _timed(Job(problem="allreduce", source=source), watchful)
    assert report.verdict is Verdict.OK, report.message


def test_a_rank_that_never_says_where_it_is_waits_for_its_limit() -> None:
    looks = StandstillWatch(spins=False)
    assert not any(looks.look(float(at), 0.0, [], [0]) for at in range(5, 300, 5))


def test_standing_still_takes_its_time_and_every_silent_rank() -> None:
    def first(said: list[RankLog], silent: list[int], used_s: float = 0.0) -> float | None:
        looks = StandstillWatch(spins=False)
        looks.look(5, 5 * used_s, [], silent)  # nobody has been asked yet
        times = (at for at in range(10, 300, 5) if looks.look(at, at * used_s, said, silent))
        return next(times, None)

    waits, moves = _log(0, "all_reduce"), _log(1, "a_function_of_mine")
    assert first([waits], [0]) == 5 + STANDSTILL_S
    assert first([waits, moves], [0]) == 5 + STANDSTILL_S
    assert first([waits, moves], [0, 1]) is None
    assert first([waits], [0, 1]) is None
    assert first([waits], [0], used_s=2 * watch.IDLE_SHARE) is None


def test_what_was_said_of_an_earlier_wait_says_nothing_of_this_one() -> None:
    looks, waits = StandstillWatch(spins=True), [_log(0, "all_reduce")]
    assert not looks.look(1000.0, 0.0, waits, [0])  # of a clock that began long ago
    assert not looks.look(1005.0, 0.0, [], [0])  # has gone on since
    still = (at for at in range(1010, 1300, 5) if looks.look(float(at), 0.0, waits, [0]))
    assert next(still) == 1005 + STANDSTILL_S


def test_what_a_judge_heard_before_it_was_away_says_nothing_of_meanwhile() -> None:
    looks, waits = StandstillWatch(spins=True), [_log(0, "all_reduce")]
    assert not looks.look(1000.0, 0.0, [], [0])
    assert not looks.look(1005.0, 0.0, waits, [0])
    still = (at for at in range(1065, 1300, 5) if looks.look(float(at), 0.0, waits, [0]))
    assert next(still) == 1065 + STANDSTILL_S


def test_a_rank_that_moves_between_two_waits_is_not_still() -> None:
    looks = StandstillWatch(spins=True)
    lines = [_log(0, "all_reduce", line=at) for at in range(60)]
    assert not any(looks.look(5.0 * at, 0.0, [own], [0]) for at, own in enumerate(lines, 1))


def _log(rank: int, function: str, line: int = 1) -> RankLog:
    frames = FILE.format(function=function, line=line)
    return RankLog(rank=rank, text=DUMP.format(frames=frames))


def _timed(job: Job, server: PreforkServer) -> tuple[Report, float]:
    began = time.monotonic()
    report = evaluate(job, prefork=server)
    return report, time.monotonic() - began
