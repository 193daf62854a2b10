"""What a run uses of a host: its GPUs, whose locks it holds, its processor cores."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator.host import gpus, host
from evaluator.host.cores import divide
from evaluator.host.gpus import Gpu
from evaluator.host.host import Host, foreign_processes, host_for
from evaluator.host.leftovers import FOLDER_PREFIX
from evaluator.messages.faults import DirtyHost, EvaluatorError
from evaluator.messages.job import Device, Job, Placement

JOB = Job(problem="allreduce", source="x", world_size=2, device=Device.CUDA)


def gpu(index: int) -> Gpu:
    return Gpu(index=index, minor=index, uuid=f"GPU-{index}", name="NVIDIA H200", memory_bytes=1)


PAIR = Host(gpus=(gpu(0), gpu(1)), threads=1)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(gpus, "processes", lambda _: set())


def is_free(kind: int, number: int = 0) -> bool:
    """Whether another process could take the lock of a GPU."""
    path = Path(tempfile.gettempdir(), f"pkb-GPU-{number}.lock")
    with path.open("w") as file:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def test_a_timed_run_has_its_gpus_alone() -> None:
    with PAIR.alone():
        assert not is_free(fcntl.LOCK_SH, number=0)
        assert not is_free(fcntl.LOCK_SH, number=1)
    assert is_free(fcntl.LOCK_EX)


def test_shared_runs_are_beside_each_other_and_whoever_else_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gpus, "offered", lambda: (gpu(0), gpu(1)))
    monkeypatch.setattr(gpus, "processes", lambda _: {os.getpid()})
    own = host_for(replace(JOB, placement=Placement.SHARED, world_size=4))
    assert [g.index for g in own.gpus] == [0]
    assert own.settings["TORCH_SYMM_MEM_ALLOW_OVERLAPPING_DEVICES"] == "1"
    assert own.settings["CUDA_VISIBLE_DEVICES"] == "GPU-0"
    assert own.cores is None
    with own.alone():
        assert is_free(fcntl.LOCK_SH)
        assert not is_free(fcntl.LOCK_EX)  # nobody is timed there
    own.wait_until_clean()


def test_multicast_is_off_for_ranks_that_share_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_SYMM_MEM_DISABLE_MULTICAST", "0")
    one = Host(gpus=(gpu(0),), threads=1, placement=Placement.SHARED)
    assert host.multicast_is_off(one.settings)
    assert not host.multicast_is_off(replace(one, placement=Placement.FULL).settings)


def test_a_fork_that_lives_on_does_not_keep_the_lock() -> None:
    with PAIR.alone():
        pid = os.fork()
        if pid == 0:
            signal.pause()
    try:
        assert is_free(fcntl.LOCK_EX)
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)


def test_a_run_on_a_processor_locks_nothing(tmp_path: Path) -> None:
    with host_for(Job(problem="allreduce", source="x")).alone():
        assert not list(tmp_path.iterdir())


def test_a_process_of_no_judge_is_a_stranger(monkeypatch: pytest.MonkeyPatch) -> None:
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with other:
        monkeypatch.setattr(gpus, "processes", lambda _: {other.pid})
        assert foreign_processes(PAIR.gpus) == {other.pid}
        with pytest.raises(DirtyHost, match=str(other.pid)), PAIR.alone():
            raise AssertionError("a stranger was overlooked")
        Path(tempfile.gettempdir(), f"{FOLDER_PREFIX}{os.getpid()}-x").mkdir()
        assert foreign_processes(PAIR.gpus) == set()
        other.kill()


def test_what_stays_on_a_gpu_makes_the_host_dirty(monkeypatch: pytest.MonkeyPatch) -> None:
    left = [{7_000_000}, {7_000_000}, set[int]()]
    monkeypatch.setattr(gpus, "processes", lambda _: left.pop(0))
    PAIR.wait_until_clean()
    assert not left
    monkeypatch.setattr(gpus, "processes", lambda _: {7_000_000})
    monkeypatch.setattr(host, "CLEAN_S", 0.1)
    with pytest.raises(DirtyHost, match="stay"):
        PAIR.wait_until_clean()


def test_a_host_offers_the_gpus_that_a_setting_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "present", lambda: (gpu(0), gpu(1), gpu(2), gpu(3)))
    monkeypatch.setenv("PKB_GPUS", "2,3")
    assert [own.index for own in host_for(JOB).gpus] == [2, 3]
    monkeypatch.setenv("PKB_GPUS", "1,9")
    with pytest.raises(EvaluatorError, match=r"PKB_GPUS=1,9 .* has 4"):
        host_for(JOB)
    monkeypatch.delenv("PKB_GPUS")
    assert [own.index for own in host_for(JOB).gpus] == [0, 1]


def test_ranks_see_their_gpus_only_and_multicast_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NCCL_NVLS_ENABLE", raising=False)
    assert PAIR.settings["CUDA_VISIBLE_DEVICES"] == "GPU-0,GPU-1"
    assert PAIR.settings["NCCL_NVLS_ENABLE"] == "0"
    assert PAIR.device_files[:2] == ["/dev/nvidia0", "/dev/nvidia1"]
    monkeypatch.setenv("NCCL_NVLS_ENABLE", "1")
    assert PAIR.settings["NCCL_NVLS_ENABLE"] == "1"


def test_of_neighbours_only_one_launches_or_spins() -> None:
    cores = divide(2, range(16))
    assert cores is not None
    assert (cores.judge, cores.launching) == (0, (2, 4))
    assert cores.helping == ((6, 7, 8, 9), (10, 11, 12, 13))


def test_processors_that_this_process_may_not_use_are_left_out() -> None:
    cores = divide(2, [*range(4, 8), *range(20, 30)])
    assert cores is not None
    assert (cores.judge, cores.launching) == (4, (6, 20))
    assert cores.helping == ((22, 23, 24, 25), (26, 27, 28, 29))


def test_few_processors_are_not_divided() -> None:
    assert divide(2, range(8)) is None
    assert divide(4, range(64)) is not None
