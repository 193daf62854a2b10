"""A judge that stood still blames no kernel for that."""

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
from evaluator.host import cgroup
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
    look_s: float = 0.0,
) -> RankGroup:
    """The side after a wait, in which looks at its limits take so long from second 50 on."""
    box = _Box()
    side = _side(box, phase)
    times = _Times(events(side))
    monkeypatch.setattr(rank_group, "time", times)

    def exceeded() -> None:
        times.now_s += look_s if times.now_s >= 50.0 else 0.0

    monkeypatch.setattr(box, "exceeded", exceeded)
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


def test_nobody_is_late_in_a_wait_in_which_the_judge_was_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(EvaluatorError, match=r"away for 36\d\d s, and "):
        _waits(monkeypatch, Phase.VERIFY, lambda _: {50.0: _away})


def test_what_a_rank_claims_is_its_own_though_the_judge_was_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def events(side: RankGroup) -> Events:
        return {50.0: _away, HOUR_S + 60: lambda: _fails(side)}

    with pytest.raises(Fault, match="rank 0: "):
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


@pytest.mark.parametrize("phase", [Phase.VERIFY, Phase.TIMED])
def test_ranks_that_hold_up_a_look_send_nobody_away(
    phase: Phase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a cgroup a process can hold its map of memory, which the look reads, for long."""

    def events(side: RankGroup) -> Events:
        return {90.0: lambda: _fails(side)}

    with pytest.raises(Fault, match="rank 0: "):
        _waits(monkeypatch, phase, events, look_s=20.0)


def test_what_the_judge_itself_works_is_no_absence() -> None:
    clock = WaitClock(began_s=0.0)
    clock._own_s -= 100.0
    clock.look(100.0)
    assert not clock.away_s


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
