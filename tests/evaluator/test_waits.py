"""A judge that stood still, or whose host was crowded later, blames no kernel for that."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from evaluator.buffers.control_page import CLAIM_LENGTH, DONE, Command
from evaluator.host import cgroup, load
from evaluator.host.load import MOST_PATIENCE, busy_s, patience_beside
from evaluator.messages.faults import EvaluatorError, Fault
from evaluator.messages.report import Phase
from evaluator.sandbox import rank_group, sandbox, wait_clock
from evaluator.sandbox.rank_group import RankGroup
from evaluator.sandbox.wait_clock import WaitClock
from tests.evaluator.test_host_failures import _Box, _side

HOUR_S = 3600.0
Events = dict[float, Callable[[], float]]


class _Times:
    """A clock that goes on by a second with each sleep. `events` are what happens when, and how
    much longer that takes."""

    def __init__(self, events: Events) -> None:
        self.now_s, self._events = 0.0, events

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, _: float) -> None:
        self.now_s += 1.0
        for at in [at for at in self._events if at <= self.now_s]:
            self.now_s += self._events.pop(at)()


def _waits(
    monkeypatch: pytest.MonkeyPatch,
    phase: Phase,
    events: Callable[[RankGroup], Events],
    shares: tuple[float, float | None] = (0.0, None),
) -> RankGroup:
    """The side after a wait. `shares` are what all on the host have of its processors, and what the
    side has, if anybody counts that."""
    box = _Box()
    side = _side(box, phase)
    times = _Times(events(side))
    in_all, own = shares
    cores = os.cpu_count() or 1
    monkeypatch.setattr(rank_group, "time", times)
    monkeypatch.setattr(load, "busy_s", lambda: in_all * cores * times.now_s)
    used = lambda: None if own is None else own * cores * times.now_s  # noqa: E731
    monkeypatch.setattr(box, "counted_processor_s", used)
    side.is_watched = True
    side._command(Command.CALL)
    try:
        side.wait()
    finally:
        side.kill()
    return side


def _answers(side: RankGroup) -> float:
    side.controls[0]._words[DONE] = 1
    return 0.0


def _fails(side: RankGroup) -> float:
    side.controls[0]._words[CLAIM_LENGTH] = 2
    return 0.0


def _away() -> float:
    return HOUR_S


@pytest.mark.parametrize("phase", [Phase.BUILD, Phase.VERIFY])
def test_an_hour_away_is_no_ranks_hour(phase: Phase, monkeypatch: pytest.MonkeyPatch) -> None:
    def events(side: RankGroup) -> Events:
        return {50.0: _away, HOUR_S + 100: lambda: _answers(side)}

    side = _waits(monkeypatch, phase, events)
    assert 90 < side.waited_s < 110


@pytest.mark.parametrize("is_told", [True, False])
def test_who_was_away_blames_nobody_for_what_follows(
    is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def events(side: RankGroup) -> Events:
        return {50.0: _away, **({HOUR_S + 60: lambda: _fails(side)} if is_told else {})}

    with pytest.raises(EvaluatorError, match=r"away for 36\d\d s, and "):
        _waits(monkeypatch, Phase.VERIFY, events)


def test_times_taken_while_away_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def events(side: RankGroup) -> Events:
        return {50.0: _away, HOUR_S + 60: lambda: _answers(side)}

    with pytest.raises(EvaluatorError, match="while it took times"):
        _waits(monkeypatch, Phase.TIMED, events)


def test_who_is_held_up_again_and_again_does_not_wait_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def events(_: RankGroup) -> Events:
        return {50.0: _away, HOUR_S + 60: _away}

    with pytest.raises(EvaluatorError, match="and again"):
        _waits(monkeypatch, Phase.VERIFY, events)


def test_what_the_judge_itself_works_is_no_absence() -> None:
    clock = WaitClock(began_s=0.0, used_s=lambda: None)
    clock._own_s -= 100.0
    clock.look(100.0)
    assert not clock.away_s


@pytest.mark.parametrize(
    ("others", "is_counted", "is_in_time"),
    [(0.9, True, True), (0.9, False, False), (0.0, True, False)],
    ids=["crowded", "not known whose work it is", "crowded by the ranks alone"],
)
def test_load_that_comes_later_gives_ranks_longer(
    others: float, is_counted: bool, is_in_time: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def events(side: RankGroup) -> Events:
        return {300.0: lambda: _answers(side)}

    shares = (0.95, 0.95 - others if is_counted else None)
    if is_in_time:
        side = _waits(monkeypatch, Phase.VERIFY, events, shares)
        assert side.patience == MOST_PATIENCE
    else:
        with pytest.raises(Fault, match="no answer from rank 0 within 120 s"):
            _waits(monkeypatch, Phase.VERIFY, events, shares)


def test_patience_is_what_others_leave() -> None:
    cores = os.cpu_count() or 1
    assert patience_beside(0.0, 10.0) == 1.0
    assert patience_beside(5.0 * cores, 10.0) == pytest.approx(2.0)
    assert patience_beside(10.0 * cores, 10.0) == MOST_PATIENCE
    assert patience_beside(1.0, 0.0) == patience_beside(-1.0, 10.0) == 1.0
    before = busy_s()
    began = time.monotonic()
    while time.monotonic() - began < 0.5:
        pass
    assert busy_s() - before > 0.2


def test_who_was_killed_has_its_time_to_end_though_the_host_stood_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = [OSError(), OSError(), None]

    def rmdir(_: Path) -> None:
        if (found := looks.pop(0)) is not None:
            raise found

    monkeypatch.setattr(Path, "rmdir", rmdir)
    now = iter(range(0, 10**9, 10**6))
    monkeypatch.setattr(
        cgroup, "time", SimpleNamespace(monotonic=lambda: next(now), sleep=lambda _: None)
    )
    assert cgroup.remove([tmp_path], 10.0)
    answers: list[list[int]] = [[], [1]]
    own = SimpleNamespace(select=lambda *_: (answers.pop(0), [], []))
    monkeypatch.setattr(sandbox, "select", own)
    assert sandbox._ends(1, 30.0)


def test_a_process_that_stays_is_waited_for_no_longer() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as child:
        pidfd = os.pidfd_open(child.pid)
        began = time.monotonic()
        assert not sandbox._ends(pidfd, 0.3)
        assert 0.2 < time.monotonic() - began < 10.0
        child.kill()
        assert select.select([pidfd], [], [], 10.0)[0]
        assert sandbox._ends(pidfd, 0.3)
        os.close(pidfd)
    assert wait_clock.AWAY_S > 1.0
