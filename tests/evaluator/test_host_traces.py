"""What a judge that serves on keeps is told apart from what a submission leaves behind."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evaluator.host import cgroup
from evaluator.host.leftovers import FOLDER_PREFIX
from evaluator.judge.prefork import JudgeProcess, PreforkServer
from tests.evaluator import host_traces
from tests.evaluator.host_traces import nothing_left_behind

# Has a child, and starts one more for each line.
JUDGE = "sleep 600 & echo; while read line; do sleep 600 & echo; done; kill $(jobs -p)"


@pytest.fixture
def judge() -> Iterator[JudgeProcess]:
    with _serving() as process:
        yield process


@contextlib.contextmanager
def _serving() -> Iterator[JudgeProcess]:
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            ["bash", "-c", JUDGE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        pidfd = os.pidfd_open(process.pid)
        yield JudgeProcess(
            pid=process.pid,
            pidfd=pidfd,
            jobs=process.stdin,
            messages=process.stdout,
            errors=errors,
            environment={},
        )
        os.close(pidfd)


def _start_another(judge: JudgeProcess) -> None:
    judge.jobs.write("\n")
    judge.jobs.flush()
    judge.messages.readline()


def test_a_judge_may_serve_on_with_what_it_has(judge: JudgeProcess, tmp_path: Path) -> None:
    with nothing_left_behind(tmp_path, [_keeper(judge)]):
        (tmp_path / f"{FOLDER_PREFIX}{judge.pid}-own").mkdir()


def test_a_judge_that_is_new_may_start_what_it_needs(tmp_path: Path) -> None:
    keeper = _keeper(None)
    with contextlib.ExitStack() as stack, nothing_left_behind(tmp_path, [keeper]):
        keeper._kept = stack.enter_context(_serving())
        _start_another(keeper._kept)


def test_a_child_that_a_judge_did_not_have_is_found(judge: JudgeProcess, tmp_path: Path) -> None:
    with (
        pytest.raises(AssertionError, match=r"a judge has more: .*sleep"),
        nothing_left_behind(tmp_path, [_keeper(judge)]),
    ):
        _start_another(judge)


def test_a_descriptor_of_others_that_is_closed_is_found(tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    complaint = "that others had opened are closed"
    with pytest.raises(AssertionError, match=complaint), nothing_left_behind(tmp_path):
        os.close(fd)


@pytest.mark.parametrize(
    ("leave", "complaint"),
    [
        (lambda folder: subprocess.Popen(["sleep", "600"]), "processes left behind"),
        (lambda folder: (folder / "file").touch(), "files left behind"),
        (lambda folder: (folder / f"{FOLDER_PREFIX}1-of-another").mkdir(), "files left behind"),
        (lambda folder: os.open(folder, os.O_RDONLY), "descriptors left open"),
    ],
)
def test_what_is_no_kept_judges_is_found_beside_one(
    leave: Callable[[Path], Any], complaint: str, judge: JudgeProcess, tmp_path: Path
) -> None:
    with (
        pytest.raises(AssertionError, match=complaint),
        nothing_left_behind(tmp_path, [_keeper(judge)]),
    ):
        left = leave(tmp_path)
    if isinstance(left, subprocess.Popen):
        left.kill()
        left.wait()
    elif isinstance(left, int):
        os.close(left)


def _keeper(judge: JudgeProcess | None) -> Any:
    return SimpleNamespace(_kept=judge)


@pytest.mark.skipif(os.getuid() != 0, reason="cgroup leaves need root here")
def test_a_cgroup_of_a_judge_that_is_gone_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroup, "PREFIX", "left-")  # judges beside this test sweep their own only
    if (leaf := cgroup.create_leaf(1 << 30, 10)) is None:
        pytest.skip("this host delegates no cgroup")
    monkeypatch.setattr(host_traces, "SWEPT_S", 0.1)
    monkeypatch.setattr(host_traces, "remove_leftovers", lambda: None)
    gone = subprocess.Popen(["true"])
    gone.wait()
    left = [path.with_name(f"{cgroup.PREFIX}{gone.pid}-left") for path in {leaf.memory, leaf.pids}]

    def fork(*_: Any) -> tuple[int, int]:
        for path in left:
            path.mkdir()
        return gone.pid, 0

    monkeypatch.setattr(PreforkServer, "_fork", fork)
    with (
        pytest.raises(AssertionError, match="cgroups left behind"),
        nothing_left_behind(tmp_path),
    ):
        PreforkServer(warm=False)._fork([], {})
    assert cgroup.remove(left, 1.0)
    assert leaf.remove()
