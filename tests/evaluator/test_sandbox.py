"""The sandbox and what it is made of: seals, filter, cgroup, kill."""

from __future__ import annotations

import contextlib
import mmap
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from evaluator.buffers.control import Control, are_done, open_gates
from evaluator.buffers.control_page import CONTROL_BYTES, Command, sealed_memfd
from evaluator.host import cgroup
from evaluator.messages.job import Limits
from evaluator.messages.report import Isolation
from evaluator.rank.control import RankControl
from evaluator.sandbox import proc_mounts, sandbox, seccomp, selfcheck
from evaluator.sandbox.selfcheck import check_host, check_isolation
from tests.evaluator.host_traces import is_running

needs_bwrap = pytest.mark.skipif(sandbox.find_bwrap() is None, reason="bubblewrap is not installed")
needs_filter = pytest.mark.skipif(not seccomp.is_supported(), reason="this processor has no filter")
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="others may not read root's files anyway")
LIMITS = Limits(memory_bytes=256 << 20, processes=32, scratch_bytes=8 << 20)
A_DEVICE = ("/dev/full",)  # as with a GPU, the processes of /proc stay writable


def launch(code: str, limits: Limits = LIMITS, devices: Sequence[str] = ()) -> sandbox.Sandbox:
    null = os.open(os.devnull, os.O_RDWR)
    program = ["-c", code]
    try:
        return sandbox.launch(
            program, limits=limits, settings={}, fds=[], output_fd=null, devices=devices
        )
    finally:
        os.close(null)


def wait_for_end(box: sandbox.Sandbox, timeout_s: float = 20.0) -> int:
    return box.process.wait(timeout_s)


@needs_bwrap
def test_this_host_holds_what_it_promises() -> None:
    found = check_host()
    assert found.isolation.at_least(Isolation.BWRAP)
    assert [probe for probe in found.probes if not probe.passed] == []
    assert found.why_not_higher


def test_a_host_without_bubblewrap_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PKB_BWRAP", raising=False)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    found = check_host()
    assert found.isolation is Isolation.NONE
    assert "not installed" in found.why_not_higher[0]


def test_a_bubblewrap_that_cannot_start_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PKB_BWRAP", "/bin/false")
    found = check_host()
    assert found.isolation is Isolation.NONE
    assert "cannot start" in found.why_not_higher[0]


def test_a_host_that_allows_too_few_open_files_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4095))
    monkeypatch.setattr(selfcheck, "offered", lambda: ("two", "GPUs"))
    found = check_host()
    assert found.isolation is Isolation.NONE
    assert "hard limit of open files is 4095" in found.why_not_higher[-1]
    assert found.gpu_probes == ()


@needs_bwrap
@needs_filter
@pytest.mark.parametrize("call", ["socket.socket", "socket.socketpair"])
def test_sockets_are_of_four_families(call: str) -> None:
    code = (
        "import errno, socket, sys\n"
        "def error(family):\n"
        "    try:\n"
        f"        {call}(family, socket.SOCK_DGRAM)\n"
        "    except OSError as error:\n"
        "        return error.errno\n"
        "denied = {family for family in range(64) if error(family) == errno.EPERM}\n"
        "sys.exit(denied != {*range(64)} - {1, 2, 10, 16})\n"
    )
    box = launch(code)
    assert wait_for_end(box) == 0
    box.kill()


@needs_bwrap
@needs_root
@pytest.mark.parametrize("devices", [(), A_DEVICE])
def test_no_file_is_read_that_only_root_may_read(devices: Sequence[str]) -> None:
    files = [path for path in Path("/proc").iterdir() if path.is_file()]
    hidden = [str(path) for path in files if path.stat().st_mode & 0o777 == 0o400]
    assert hidden
    code = (
        "import contextlib, sys\n"
        f"for path in {hidden}:\n"
        "    with contextlib.suppress(OSError), open(path, 'rb') as file:\n"
        "        file.read(1) and sys.exit(1)\n"
    )
    box = launch(code, devices=devices)
    assert wait_for_end(box) == 0
    box.kill()


def _no_files_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proc_mounts, "arguments", lambda **_: ["--remount-ro", "/proc"])


def _any_family(monkeypatch: pytest.MonkeyPatch) -> None:
    with contextlib.suppress(OSError), socket.socket(socket.AF_VSOCK):
        monkeypatch.setattr(seccomp, "_deny_families", list)
        return
    pytest.skip("this host has no AF_VSOCK")


def _any_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seccomp, "DENIED_X86_64", {})


@needs_bwrap
@needs_filter
@pytest.mark.parametrize(
    ("remove", "probe"),
    [
        pytest.param(_no_files_hidden, "root-only files", marks=needs_root),
        (_any_family, "socket families"),
        (_any_call, "system calls"),
    ],
)
def test_a_guard_that_is_gone_fails_its_probe(
    remove: Callable[[pytest.MonkeyPatch], None], probe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove(monkeypatch)
    found = check_isolation()
    assert found.isolation is Isolation.NONE
    assert probe in found.why_not_higher[0]


@needs_bwrap
def test_killing_reaches_daemons_and_leaves_no_cgroup() -> None:
    code = "import os,time\nif os.fork() == 0:\n os.setsid()\n os.fork()\ntime.sleep(600)"
    box = launch(code)
    time.sleep(0.5)
    assert box.is_alive
    init_pid = box.init_pid
    assert init_pid is not None
    box.kill()
    assert not is_running(init_pid)
    assert box.leaf is None or not box.leaf.pids.exists()


@needs_bwrap
def test_a_killed_parent_takes_its_sandbox_along() -> None:
    code = (
        "import os,sys,time\n"
        "from evaluator.sandbox import sandbox\n"
        "from evaluator.messages.job import Limits\n"
        "box = sandbox.launch(['-c', 'import time; time.sleep(600)'], limits=Limits(),"
        " settings={}, fds=[], output_fd=2)\n"
        "print(box.init_pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    init_pid = int(parent.stdout.readline())
    time.sleep(0.3)
    assert is_running(init_pid)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + 10
    while is_running(init_pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_running(init_pid)
    parent.stdout.close()


@needs_bwrap
@pytest.mark.skipif(os.getuid() != 0, reason="cgroup leaves need root here")
def test_memory_and_forks_are_limited_and_counted() -> None:
    hungry = launch(
        "a = [bytearray(16 << 20) for _ in range(64)]\nfor x in a: x[::4096] = b'x' * 4096"
    )
    if hungry.leaf is None:
        hungry.kill()
        pytest.skip("this host delegates no cgroup")
    assert wait_for_end(hungry) != 0
    assert hungry.exceeded() == "memory"
    assert not hungry.was_starved()
    hungry.kill()
    forking = launch("import os,time\nfor _ in range(100):\n if os.fork() == 0: time.sleep(60)")
    deadline = time.monotonic() + 10
    while forking.exceeded() != "processes" and time.monotonic() < deadline:
        time.sleep(0.05)
    assert forking.exceeded() == "processes"
    forking.kill()


@needs_bwrap
def test_without_a_cgroup_limits_are_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "create_leaf", lambda *_: None)
    box = launch(
        "import os,time\nfor _ in range(40):\n if os.fork() == 0: time.sleep(60)\ntime.sleep(60)"
    )
    assert box.isolation is Isolation.BWRAP
    deadline = time.monotonic() + 10
    while box.exceeded() != "processes" and time.monotonic() < deadline:
        time.sleep(0.05)
    assert box.exceeded() == "processes"
    box.kill()


@needs_bwrap
def test_the_environment_is_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PKB_WORKER_TOKEN", "hidden")
    box = launch("import os,sys\nsys.exit(int('PKB_WORKER_TOKEN' in os.environ))")
    assert wait_for_end(box) == 0
    box.kill()


def test_a_sealed_memfd_cannot_be_truncated() -> None:
    fd = sealed_memfd("test", 4096)
    with pytest.raises(PermissionError):
        os.ftruncate(fd, 0)
    with pytest.raises(PermissionError):
        os.ftruncate(fd, 8192)
    assert len(mmap.mmap(fd, 4096)) == 4096
    os.close(fd)


def test_the_filter_is_well_formed() -> None:
    program = seccomp.program()
    families = len(seccomp.SOCKET_CALLS) + 1 + len(seccomp.FAMILIES) + 1
    assert len(program) % 8 == 0
    assert len(program) // 8 == 6 + 2 * len(seccomp.DENIED_X86_64) + families + 1


def test_a_rank_and_the_judge_meet_on_the_control_page() -> None:
    fd = sealed_memfd("test", CONTROL_BYTES)
    judge, rank = Control(fd), RankControl(fd)
    judge.write_plan({"slots": []})
    judge.stage(Command.CALL, (3, 1, 2))
    judge.release(judge.next_sequence())
    assert not judge.is_done
    assert rank.wait_go() == (Command.CALL, (3, 1, 2))
    assert rank.read_plan() == {"slots": []}
    rank.done()
    assert judge.is_done
    rank._sequence += 1
    rank.done()
    assert judge.is_ahead
    judge.pin(3)
    assert rank.core == 3
    rank.write_answer(b"{}")
    assert judge.answer == b"{}"
    rank.fail(b"x" * 100_000)
    assert len(judge.claim) == 16 << 10
    os.close(fd)


def test_a_gate_opens_with_its_key_and_a_rank_commits_as_it_is_done() -> None:
    fd = sealed_memfd("test", CONTROL_BYTES)
    judge, rank = Control(fd), RankControl(fd)
    judge.stage(Command.GATED, (1,))
    judge.release(judge.next_sequence())
    assert rank.wait_go() == (Command.GATED, (1,))
    assert not judge.is_queued
    rank.queued()
    assert (judge.is_queued, judge.is_done) == (True, False)
    open_gates([judge], [(1 << 64) - 1])
    assert rank.wait_at_gate() == (1 << 64) - 1
    rank.commit((1 << 64) - 2)
    assert are_done([judge, judge], 1)
    assert judge.commitment == (1 << 64) - 2
    assert not are_done([judge, Control(fd)], 9)
    os.close(fd)


def test_a_batch_has_a_limit() -> None:
    fd = sealed_memfd("test", CONTROL_BYTES)
    with pytest.raises(ValueError, match="at most"):
        Control(fd).stage(Command.CALL, tuple(range(2000)))
    os.close(fd)
