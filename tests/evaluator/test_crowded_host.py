"""What others on a host use up is no fault of a kernel, and what a kernel uses up is."""

from __future__ import annotations

import time

import pytest

from evaluator.host import cgroup
from evaluator.host.processes import count_tasks, tree
from evaluator.messages.job import Job, Limits
from evaluator.sandbox import processor_support
from tests.evaluator.test_host_failures import SLEEPERS, needs_root
from tests.evaluator.test_sandbox import launch, needs_bwrap


def test_a_host_too_busy_to_parse_a_source_still_says_what_it_lacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = Job(problem="allreduce", source="def solution(x: object) -> object: return x.cuda()")
    assert processor_support.lacking(job)
    monkeypatch.setattr(processor_support, "PARSE_S", 0.0)
    assert processor_support.lacking(job)


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
