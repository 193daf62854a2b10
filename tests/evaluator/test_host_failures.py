"""What the host lacks, or its other users have, is no fault of a kernel."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evaluator.buffers.control import Control
from evaluator.buffers.control_page import CLAIM_LENGTH, CONTROL_BYTES, DONE, Command, sealed_memfd
from evaluator.diagnosis.watch import SHARED_STANDSTILL_S
from evaluator.evaluate import evaluate
from evaluator.host import cgroup
from evaluator.host.load import MOST_PATIENCE
from evaluator.host.processes import tree
from evaluator.judge.prefork import PreforkServer
from evaluator.messages.faults import EvaluatorError, Fault, GpuFull
from evaluator.messages.job import Limits, Placement
from evaluator.messages.rank_setup import has_joined, say_joined, send_slab
from evaluator.messages.report import Phase, RankLog, Verdict
from evaluator.sandbox import rank_group, sandbox
from evaluator.sandbox.logs import LogCollector
from evaluator.sandbox.rank_group import RankGroup
from tests.evaluator.kernel_files import named
from tests.evaluator.test_sandbox import launch, needs_bwrap, wait_for_end

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root here")
USER, OTHERS_THREADS = 4242, 200
HUNGRY = "a = [bytearray(16 << 20) for _ in range(30)]\nfor x in a: x[::4096] = b'x' * 4096"
SLEEPERS = (
    "import threading,time\n"
    "for _ in range({count}): threading.Thread(target=time.sleep, args=({seconds},)).start()\n"
    "print('up', flush=True)"
)
AT_THE_END = (
    "Current thread 0x00007f0000000001 (most recent call first):\n"
    '  File "/x/torch/cuda/__init__.py", line 9 in synchronize\n'
    '  File "/x/evaluator/rank/series.py", line 43 in make_series\n'
    '  File "/x/evaluator/rank/runner.py", line 80 in run_rank\n'
)
MANY_CORES = (
    "import sys\nfrom dataclasses import replace\nfrom evaluator.judge import pool, prefork\n"
    "host_for = pool.host_for\n"
    "pool.host_for = lambda job: replace(host_for(job), threads={cores} // job.world_size)\n"
    "prefork.main(int(sys.argv[1]), *sys.argv[2:])"
)
AS_USER = (
    "import os\nfrom evaluator.messages.job import Limits\nfrom evaluator.sandbox import sandbox\n"
    "box = sandbox.launch(['-c', {code!r}], limits=Limits(processes=128), settings={{}}, fds=[],"
    " output_fd=2)\n"
    "assert box.leaf is None\n"
    "raise SystemExit(box.process.wait(30))"
)


def python_for_all() -> str:
    """Return a Python that every user may run: this one, or, as it may lie in root's, Debian's."""
    folders = Path(sys.executable).resolve().parents
    return sys.executable if all(own.stat().st_mode & 1 for own in folders) else "/usr/bin/python3"


class _Box:
    """A sandbox that is as told."""

    isolation, process = None, SimpleNamespace(returncode=1)

    def __init__(
        self, exceeded: str | None = None, *, is_alive: bool = True, is_starved: bool = False
    ) -> None:
        self.is_alive, self._is_starved = is_alive, is_starved
        self._exceeded = exceeded

    def processor_s(self) -> float:
        return 0.0

    def exceeded(self) -> str | None:
        return self._exceeded

    def was_starved(self) -> bool:
        return self._is_starved

    def kill(self) -> None:
        return None


def _side(box: _Box, phase: Phase, channels: list[socket.socket] | None = None) -> RankGroup:
    fd = sealed_memfd("control", CONTROL_BYTES)
    own: Any = box
    side = RankGroup(
        side="submission",
        limits=Limits(),
        sandbox=own,
        channel=socket.socketpair()[0],
        logs=LogCollector(1 << 10),
        slab_channels=channels or [],
        control_fds=[fd],
        controls=[Control(fd)],
    )
    side.enter(phase)
    return side


@needs_bwrap
@needs_root
@pytest.mark.parametrize("is_shared", [True, False])
def test_without_a_cgroup_what_ranks_share_counts_once(
    is_shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroup, "create_leaf", lambda *_: None)
    code = (
        "import mmap,os,time\nown = mmap.mmap(-1, 150 << 20, flags={flags})\n"
        "for _ in range(2): os.fork()\n"
        "for at in range(0, len(own), 4096): own[at] = 1\n"
        "time.sleep(60)"
    )
    flags = "mmap.MAP_SHARED" if is_shared else "mmap.MAP_PRIVATE"
    box = launch(code.format(flags=flags), Limits(memory_bytes=400 << 20, processes=32))
    assert box.init_pid is not None
    deadline = time.monotonic() + 10.0
    while sum(tree(box.init_pid).values()) < 600 << 20 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert box.exceeded() == (None if is_shared else "memory")
    box.kill()


@pytest.mark.parametrize("cores", [2, 128])
def test_a_process_may_use_every_processor_in_all_of_its_time(
    cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    limits = Limits()
    phases_s = MOST_PATIENCE * (limits.build_s + 3 * limits.verify_s + limits.timed_s)
    code = "import resource,sys\nsys.exit(resource.getrlimit(resource.RLIMIT_CPU)[1] < {least})"
    box = launch(code.format(least=int(cores * phases_s)))
    assert wait_for_end(box) == 0
    box.kill()


@pytest.mark.parametrize("cores", [256])
def test_threads_that_torch_starts_for_many_processors_are_not_too_many(cores: int) -> None:
    job = named("honest", "all_reduce").job
    job = replace(job, size="standard", placement=Placement.SHARED)
    with PreforkServer(warm=True, program=("-c", MANY_CORES.format(cores=cores))) as prefork:
        report = evaluate(job, prefork=prefork)
    assert report.verdict is Verdict.OK, report.message


@needs_bwrap
@needs_root
@pytest.mark.parametrize("wait_s", [0.0, 2.0], ids=["before", "after"])
def test_what_its_user_runs_elsewhere_takes_no_processes_from_a_sandbox(wait_s: float) -> None:
    usual: dict[str, Any] = {
        "user": USER,
        "group": USER,
        "env": {"PATH": os.environ["PATH"], "HOME": "/tmp"},
    }
    python = python_for_all()
    sleepers = [python, "-c", SLEEPERS.format(count=OTHERS_THREADS, seconds=60)]
    later = f"import time; time.sleep({2 * wait_s})\n" + SLEEPERS.format(count=60, seconds=1)
    run = [python, "-c", AS_USER.format(code=later)]
    usual |= {"cwd": sandbox.REPOSITORY}
    with contextlib.ExitStack() as stack:
        if wait_s:
            own = stack.enter_context(subprocess.Popen(run, stderr=subprocess.PIPE, **usual))
            time.sleep(wait_s)
        others = subprocess.Popen(sleepers, stdout=subprocess.PIPE, **usual)
        stack.enter_context(others)
        stack.callback(others.kill)
        assert others.stdout is not None
        assert others.stdout.readline() == b"up\n"
        if not wait_s:
            own = stack.enter_context(subprocess.Popen(run, stderr=subprocess.PIPE, **usual))
        _, said = own.communicate()
        assert own.returncode == 0, said


@pytest.fixture
def channel() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with closing(ours), closing(theirs):
        yield ours, theirs


def test_what_a_rank_has_said_it_cannot_take_back(
    channel: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = channel
    assert not has_joined(ours)
    say_joined(theirs)
    fd = os.open(os.devnull, os.O_RDONLY)
    send_slab(ours, fd, 1)  # never read: the end that is closed resets the connection
    os.close(fd)
    theirs.shutdown(socket.SHUT_RDWR)
    theirs.close()
    assert has_joined(ours)
    assert has_joined(ours)


@pytest.mark.parametrize("has_begun", [False, True])
def test_a_failure_is_the_sources_only_where_a_rank_has_come_to_it(
    has_begun: bool, channel: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = channel
    other, _theirs = socket.socketpair()
    if has_begun:
        say_joined(theirs)
    side = _side(_Box(is_alive=False), Phase.BUILD, [other, ours])
    with pytest.raises(Fault if has_begun else EvaluatorError, match="ended during build"):
        side.check_health()
    claim = b'{"verdict": "oom", "cause": "gpu_memory", "text": "CUDA out of memory"}'
    side.controls[0]._map[32 << 10 : (32 << 10) + len(claim)] = claim
    side.controls[0]._words[CLAIM_LENGTH] = len(claim)
    with pytest.raises(Fault if has_begun else GpuFull, match="CUDA out of memory"):
        side.check_health()
    side.kill()


@pytest.mark.parametrize(("call_s", "is_in_time"), [(9.0, True), (0.1, False)])
def test_calls_that_follow_each_other_may_take_as_long_as_they_do_one_by_one(
    call_s: float, is_in_time: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a GPU a rank begins six calls at once, and waits at the end of the last."""
    side, now = _side(_Box(), Phase.VERIFY), [0.0]
    side.is_watched = side.spins = True
    side.standstill_s, side.call_s = SHARED_STANDSTILL_S, call_s

    def sleep(_: float) -> None:
        now[0] += 1.0
        side.controls[0]._words[DONE] = int(now[0] > 6 * 9.0)

    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=sleep)
    monkeypatch.setattr(rank_group, "time", clock)
    monkeypatch.setattr(side.logs, "heard", lambda: [RankLog(rank=0, text=AT_THE_END)])
    side._command(Command.SERIES, tuple(range(6)))
    if is_in_time:
        side.wait()
    else:
        with pytest.raises(Fault, match=r"while standing still for 45\.6 s"):
            side.wait()
    side.kill()


def test_nobody_is_late_who_answers_while_the_judge_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    side = _side(_Box(), Phase.VERIFY)
    side._command(Command.CALL)
    times = chain([0.0], repeat(1e6))  # away between a look at the ranks and one at the clock

    def later() -> float:
        now = next(times)
        if now:
            side.controls[0]._words[DONE] = 1
        return now

    monkeypatch.setattr(rank_group, "time", SimpleNamespace(monotonic=later, sleep=time.sleep))
    side.wait()
    side.kill()
