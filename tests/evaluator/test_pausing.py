"""Whatever runs in a sandbox stands still while it is paused, by a freezer and without one."""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from evaluator.host import cgroup, freezer
from evaluator.judge import run_context
from evaluator.judge.pool import REFERENCE, SUBMISSION
from evaluator.messages.faults import EvaluatorError, Fault
from evaluator.messages.job import Limits
from evaluator.messages.report import Verdict
from evaluator.sandbox import pausing, sandbox

pytestmark = pytest.mark.skipif(sandbox.find_bwrap() is None, reason="bubblewrap is not installed")
SPAN_S = 0.1
COUNT = """
import ctypes, mmap, os, signal, struct, sys, threading, time
page = mmap.mmap({fd}, 4096)
def count(place):
    while True:
        page[place:place + 8] = struct.pack("q", struct.unpack("q", page[place:place + 8])[0] + 1)
"""
PROGRAMS = {
    "plain": "os.fork() or count(8)\ncount(0)",
    "threads": "threading.Thread(target=count, args=(8,)).start()\ncount(0)",
    "leader has exited": (
        "threading.Thread(target=count, args=(0,)).start()\n"
        "threading.Thread(target=count, args=(8,)).start()\n"
        "ctypes.CDLL(None).pthread_exit(None)"
    ),
    "waits in vfork": (
        "libc = ctypes.PyDLL(None)\n"
        "if os.fork() == 0: count(8)\n"
        "threading.Thread(target=count, args=(0,)).start()\n"
        "time.sleep(0.1)\n"
        "if libc.vfork() == 0: count(16)"
    ),
    "continues its siblings": (
        "page[24:32] = struct.pack('q', os.getpid())\n"
        "if os.fork() == 0:\n"
        "    while True:\n"
        "        page[8:16] = struct.pack('q', struct.unpack('q', page[8:16])[0] + 1)\n"
        "        os.kill(os.getppid(), signal.SIGCONT)\n"
        "count(0)"
    ),
}
BY = ("v2", "v1", "signals")
# Without a freezer, what always waits in vfork does not come to a stop, and is told so.
STOPPABLE = [(by, p) for by in BY for p in PROGRAMS if (by, p) != ("signals", "waits in vfork")]


@contextlib.contextmanager
def running(program: str) -> Iterator[tuple[sandbox.Sandbox, Callable[[], tuple[int, ...]]]]:
    """A sandbox, and what its counters say."""
    fd = os.memfd_create("counters")
    os.truncate(fd, 4096)
    null = os.open(os.devnull, os.O_RDWR)
    page = mmap.mmap(fd, 4096)
    code = COUNT.format(fd=fd) + program
    box = sandbox.launch(["-c", code], limits=Limits(), settings={}, fds=[fd], output_fd=null)
    try:
        deadline = time.monotonic() + 20
        while not all(struct.unpack("2q", page[:16])) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert all(struct.unpack("2q", page[:16])), "the program does not count"
        time.sleep(0.3)  # until it has got where its name says
        yield box, lambda: struct.unpack("3q", page[:24])
    finally:
        box.kill()
        page.close()
        os.close(fd)
        os.close(null)


def goes_on(counters: Callable[[], tuple[int, ...]], before: tuple[int, ...]) -> bool:
    """Return whether something counts on, within what a busy machine takes to let it."""
    deadline = time.monotonic() + 10
    while counters() == before and time.monotonic() < deadline:
        time.sleep(0.01)
    return counters() > before


@pytest.fixture
def stops_by(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Takes the other ways to stop a sandbox away; skips where the host lacks the one named."""

    def choose(by: str) -> None:
        nowhere = cgroup.ROOT / "pkb-none"
        if by != "v2":
            monkeypatch.setattr(cgroup, "v2_folder", lambda: nowhere)
        if by == "signals":
            monkeypatch.setattr(sandbox, "create_freezer", lambda _: None)
        elif (found := freezer.create_freezer(None)) is None or f"v{found.version}" != by:
            pytest.skip(f"this host has no freezer of {by}")
        else:
            assert found.remove()

    return choose


@pytest.mark.parametrize(("by", "program"), STOPPABLE)
def test_nothing_moves_while_it_is_paused(
    by: str, program: str, stops_by: Callable[[str], None]
) -> None:
    stops_by(by)
    with running(PROGRAMS[program]) as (box, counters):
        for _ in range(5):
            with box.pauser.paused():
                before = counters()
                time.sleep(SPAN_S)
                assert counters() == before
            assert goes_on(counters, before)
        assert box.pauser.spans == 5
        assert box.pauser.paused_s >= 5 * SPAN_S
        assert box.pauser.worked_s < SPAN_S


def test_what_cannot_be_stopped_is_its_own_fault(
    stops_by: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    stops_by("signals")
    monkeypatch.setattr(pausing, "MOST_POLLS", 150)
    with running(PROGRAMS["waits in vfork"]) as (box, counters):
        with pytest.raises(Fault) as caught, box.pauser.paused():
            pass
        assert (caught.value.verdict, caught.value.cause) == (Verdict.RESOURCE_LIMIT, "pause")
        before = counters()
        assert goes_on(counters, before)


class LateFreezer:
    """Says of each freeze for so many looks that it is not there yet."""

    processor_s = 0.0

    def __init__(self, late: int) -> None:
        self.late = self.left = late

    def freeze(self) -> None:
        self.left = self.late

    def thaw(self) -> None:
        """Let go."""

    @property
    def is_frozen(self) -> bool:
        self.left -= 1
        return self.left < 0


def pause_by(freezer: LateFreezer, times: int) -> None:
    own: Any = freezer
    pauser = pausing.Pauser(freezer=own, pids=list)
    for _ in range(times):
        with pauser.paused():
            pass


@pytest.fixture
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("SPIN_S", 0.0), ("POLL_S", 0.0), ("POLLS_A_TRY", 1000)):
        monkeypatch.setattr(pausing, name, value)
    monkeypatch.setattr(pausing, "MOST_POLLS", 300)


@pytest.mark.usefixtures("_hasty")
def test_pauses_that_all_take_long_come_to_an_end_together() -> None:
    pause_by(LateFreezer(250), times=1)
    with pytest.raises(Fault, match="in all") as caught:
        pause_by(LateFreezer(250), times=2)
    assert (caught.value.verdict, caught.value.cause) == (Verdict.RESOURCE_LIMIT, "pause")


@pytest.mark.usefixtures("_hasty")
def test_pauses_that_take_a_little_longer_go_on() -> None:
    pause_by(LateFreezer(pausing.POLLS_A_SPAN), times=50)


def test_a_wait_for_a_child_that_starts_a_program_is_waited_for(
    stops_by: Callable[[str], None],
) -> None:
    stops_by("signals")
    code = (
        "import subprocess\nthreading.Thread(target=count, args=(0,)).start()\n"
        "while True:\n"
        "    page[8:16] = struct.pack('q', struct.unpack('q', page[8:16])[0] + 1)\n"
        "    subprocess.run(['/bin/true'])"
    )
    with running(code) as (box, counters):
        for _ in range(20):
            with box.pauser.paused():
                before = counters()
                time.sleep(0.01)
                assert counters() == before
            time.sleep(0.01)


def test_what_goes_on_by_a_timer_is_found_out(stops_by: Callable[[str], None]) -> None:
    stops_by("signals")
    with running(TIMER) as (box, counters):
        before = counters()
        with pytest.raises(Fault) as caught:
            pause_often(box)
        assert caught.value.cause == "paused_work"
        assert caught.value.verdict is Verdict.PROTOCOL_VIOLATION
        assert counters() > before


def pause_often(box: sandbox.Sandbox) -> None:
    for _ in range(100):  # on a busy host it gets little of a processor each time
        with box.pauser.paused():
            time.sleep(SPAN_S)


@pytest.mark.parametrize("by", ["v2", "v1"])
def test_a_timer_does_not_continue_what_is_frozen(by: str, stops_by: Callable[[str], None]) -> None:
    stops_by(by)
    with running(TIMER) as (box, counters), box.pauser.paused():
        before = counters()
        time.sleep(SPAN_S)
        assert counters() == before


@pytest.mark.parametrize("is_reference", [False, True])
def test_a_side_is_blamed_for_its_own_pause_only(is_reference: bool) -> None:
    @contextlib.contextmanager
    def pause() -> Iterator[None]:
        yield
        raise Fault(Verdict.RESOURCE_LIMIT, "pause", "moves on")

    side = SimpleNamespace(side=REFERENCE if is_reference else SUBMISSION, paused=pause)
    with pytest.raises(EvaluatorError if is_reference else Fault), run_context.paused(side):  # type: ignore[arg-type]
        pass
    side.paused = contextlib.nullcontext
    with pytest.raises(Fault, match="of the other"), run_context.paused(side):  # type: ignore[arg-type]
        raise Fault(Verdict.RUNTIME_ERROR, "exit", "of the other")


@pytest.mark.parametrize("by", BY)
def test_what_is_paused_can_be_killed(by: str, stops_by: Callable[[str], None]) -> None:
    stops_by(by)
    with running(PROGRAMS["leader has exited"]) as (box, _):
        box.pauser._stop()
        box.kill()
        assert not box.is_alive


TIMER = """
class Event(ctypes.Structure):
    _fields_ = [("value", ctypes.c_void_p), ("signal", ctypes.c_int), ("notify", ctypes.c_int),
                ("rest", ctypes.c_char * 64)]
timer, event = ctypes.c_void_p(), Event(signal=signal.SIGCONT, notify=0)
libc = ctypes.CDLL(None)
assert libc.timer_create(1, ctypes.byref(event), ctypes.byref(timer)) == 0
in_30_ms = (ctypes.c_long * 4)(0, 0, 0, 30000000)
def count_on(place):
    while True:
        page[place:place + 8] = struct.pack("q", struct.unpack("q", page[place:place + 8])[0] + 1)
        assert libc.timer_settime(timer, 0, ctypes.byref(in_30_ms), None) == 0
threading.Thread(target=count, args=(8,)).start()
count_on(0)
"""
