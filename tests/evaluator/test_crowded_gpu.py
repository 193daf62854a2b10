"""Others on a run's GPUs are no fault of its kernel. No GPU is needed to see it."""

from __future__ import annotations

import os
import tempfile
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evaluator.host import gpus
from evaluator.host.gpus import Gpu
from evaluator.host.host import Host
from evaluator.host.leftovers import FOLDER_PREFIX
from evaluator.judge import phases
from evaluator.judge.baseline import Baselines
from evaluator.judge.findings import Findings
from evaluator.judge.run_context import RunContext
from evaluator.messages.faults import BesideSubmission, DirtyHost, Fault, GpuFull
from evaluator.messages.job import Device, Job, Placement
from evaluator.messages.report import Phase, Verdict
from evaluator.sandbox import support

GPU = Gpu(index=0, minor=0, uuid="GPU-0", name="NVIDIA H200", memory_bytes=1000)
OWN, OTHER, GONE = os.getpid(), 1, 7_000_000
FULL = Fault(Verdict.OOM, "gpu_memory", "rank 0: CUDA out of memory")


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def _held(monkeypatch: pytest.MonkeyPatch, *looks: dict[int, int]) -> None:
    """Each look at the GPU finds the next of these, and then the last again and again."""
    left = list(looks)
    find = lambda _: left.pop(0) if len(left) > 1 else left[0]  # noqa: E731
    monkeypatch.setattr(gpus, "held_bytes", find)


def _another_judge() -> None:
    Path(tempfile.gettempdir(), f"{FOLDER_PREFIX}{OTHER}-x").mkdir()
    Path(tempfile.gettempdir(), f"{FOLDER_PREFIX}{OWN}-x").mkdir()


def _context(placement: Placement, phase: Phase = Phase.TIMED) -> RunContext:
    process = SimpleNamespace(process=SimpleNamespace(pid=OWN))
    alive: Any = {
        "pool": SimpleNamespace(
            host=Host(gpus=(GPU,), threads=1, placement=placement),
            oracle=SimpleNamespace(),
            reference=SimpleNamespace(enter=lambda _: None),
        ),
        "submission": SimpleNamespace(
            sandbox=process,
            is_started=True,
            is_ended=False,
            enter=lambda _: None,
            side="submission",
        ),
        "emit": lambda progress: None,
    }
    job = Job(problem="allreduce", source="x", device=Device.CUDA, placement=placement)
    return RunContext(job=job, findings=Findings(phase=phase), **alive)


def test_a_process_that_ends_while_it_is_looked_at_makes_no_host_dirty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = Host(gpus=(GPU,), threads=1)
    _held(monkeypatch, {GONE: 10}, {})
    with own.alone():
        pass
    _held(monkeypatch, {GONE: 10}, {GONE + 1: 10})
    with own.alone():
        pass
    _held(monkeypatch, {GONE: 10})
    with pytest.raises(DirtyHost), own.alone():
        raise AssertionError("a stranger was overlooked")


@pytest.mark.parametrize("phase", [Phase.BUILD, Phase.TIMED])
@pytest.mark.parametrize(("others", "is_crowded"), [(400, True), (50, False)])
def test_a_gpu_that_others_fill_declines_and_blames_nothing(
    others: int, is_crowded: bool, phase: Phase, monkeypatch: pytest.MonkeyPatch
) -> None:
    _held(monkeypatch, {OWN: 550 if phase is Phase.TIMED else 0, OTHER: others})
    fault = _context(Placement.FULL, phase).fault_of_full_gpu()
    blamed = Verdict.OOM if phase is Phase.TIMED else Verdict.HOST_UNSUPPORTED
    assert (fault and fault.verdict) == (None if is_crowded else blamed)


@pytest.mark.parametrize("failure", [FULL, GpuFull("the judge's rank 0 has too little memory")])
@pytest.mark.parametrize(
    ("others", "placement", "is_repeated"),
    [(400, Placement.FULL, True), (50, Placement.FULL, False), (400, Placement.SHARED, False)],
)
def test_a_kernel_that_finds_memory_in_others_hands_is_judged_again(
    others: int,
    placement: Placement,
    is_repeated: bool,
    failure: Exception,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_: RunContext) -> None:
        raise failure

    _held(monkeypatch, {OWN: 550, OTHER: others})
    monkeypatch.setattr(support, "lacking", lambda *_: None)
    monkeypatch.setattr(Host, "alone", nullcontext)
    monkeypatch.setattr(phases, "_build", fail)
    monkeypatch.setattr(phases, "_judge_timed", lambda context, _: phases._judge(context))
    context = _context(placement)
    vars(context.oracle)["module"] = SimpleNamespace(problem=None)
    if is_repeated:
        with pytest.raises(BesideSubmission):
            phases.run_phases(context, Baselines())
    else:
        found = phases.run_phases(context, Baselines())
        assert found is not None
        assert found.cause == "gpu_memory"


def test_a_submissions_process_that_ends_while_it_is_looked_at_is_no_other_judge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _another_judge()
    own = Host(gpus=(GPU,), threads=1)
    for later in ({OWN: 10}, {OWN: 10, GONE + 1: 900}):
        _held(monkeypatch, {OWN: 10, GONE: 900}, later)
        assert not own.is_crowded
    _held(monkeypatch, {OWN: 10, OTHER: 900})
    assert own.is_crowded
