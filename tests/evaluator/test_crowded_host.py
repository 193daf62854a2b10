"""What others on a host use up is no fault of a kernel, and what a kernel uses up is."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from evaluator.buffers.control_page import CLAIM_LENGTH
from evaluator.host import cgroup
from evaluator.host.processes import count_tasks, tree
from evaluator.messages.faults import EvaluatorError
from evaluator.messages.job import Job, Limits
from evaluator.messages.report import Phase
from evaluator.sandbox import processor_support
from evaluator.sandbox.sandbox import Sandbox
from tests.evaluator.test_host_failures import SLEEPERS, _Box, _side, needs_root
from tests.evaluator.test_sandbox import launch, needs_bwrap


def test_a_host_too_busy_to_parse_a_source_still_says_what_it_lacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = Job(problem="allreduce", source="def solution(x: object) -> object: return x.cuda()")
    assert processor_support.lacking(job)
    monkeypatch.setattr(processor_support, "PARSE_S", 0.0)
    assert processor_support.lacking(job)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("killed", "most_bytes", "is_starved"),
    [(0, 100, False), (1, 100, True), (1, 600, False), (1, None, False)],
)
def test_a_host_without_memory_for_a_kernel_far_below_its_limit_is_known(
    version: int, killed: int, most_bytes: int | None, is_starved: bool, tmp_path: Path
) -> None:
    events, peak = {
        1: ("memory.oom_control", "memory.max_usage_in_bytes"),
        2: ("memory.events", "memory.peak"),
    }[version]
    (tmp_path / events).write_text(f"oom_kill {killed}\n")
    if most_bytes is not None:
        (tmp_path / peak).write_text(f"{most_bytes}\n")
    leaf = cgroup.Leaf(memory=tmp_path, pids=tmp_path, version=version)
    box = SimpleNamespace(leaf=leaf, limits=Limits(memory_bytes=1000))
    assert Sandbox.was_starved(cast(Sandbox, box)) is is_starved


def test_what_ranks_claim_beside_one_that_the_host_ended_is_not_theirs() -> None:
    side = _side(_Box("memory", is_starved=True), Phase.VERIFY)
    side.controls[0]._words[CLAIM_LENGTH] = 2
    with pytest.raises(EvaluatorError, match="ran out of memory"):
        side.check_health()
    side.kill()


@needs_bwrap
@needs_root
@pytest.mark.parametrize("count", [20, 60])
def test_without_a_cgroup_threads_are_processes_too(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroup, "create_leaf", lambda *_: None)
    box = launch(SLEEPERS.format(count=count, seconds=60), Limits(processes=40))
    assert box.init_pid is not None
    deadline = time.monotonic() + 10.0
    while count_tasks(tree(box.init_pid)) < count and time.monotonic() < deadline:
        time.sleep(0.05)
    assert box.exceeded() == ("processes" if count > 40 else None)
    box.kill()
