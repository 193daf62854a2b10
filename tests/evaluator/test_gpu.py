"""Hostile and honest kernels for GPUs through the whole evaluator: the GPU judge's specification.

What needs no GPU is tested everywhere: that the kernels say what they are.
"""

from __future__ import annotations

import ast
import contextlib
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluator.diagnosis.scan import PATTERNS, scan_source
from evaluator.host import gpus
from evaluator.messages.job import Device, Dtype, limits_of
from evaluator.messages.report import RankLog, Report, Verdict
from evaluator.rank.calls import Slot
from evaluator.rank.runner import run_rank
from tests.evaluator.host_traces import nothing_left_behind
from tests.evaluator.judging import HURRIED, PREFORK, end_kept, judged
from tests.evaluator.kernel_files import KernelFile, all_in, named, read
from tests.evaluator.test_messages import REPORT

MISBEHAVING = all_in("gpu/misbehaving")
HONEST = all_in("gpu/honest")
ALL_REDUCE = named("gpu/honest", "nccl_all_reduce")
GIVEN_BACK_S = 10.0
# The frame above a kernel's is the slot's, and the runner's, which they call `frame`, above that.
FRAME_READ = re.compile(r"(_getframe\(1\)|frame)\.f_locals\[\"(\w+)\"\]")
SLACK_BYTES = 64 << 20


def _parameters(kernels: list[KernelFile], *marks: pytest.MarkDecorator) -> list[object]:
    return [
        pytest.param(kernel, id=kernel.path.stem, marks=[*marks, *_marks(kernel)])
        for kernel in kernels
    ]


def _marks(kernel: KernelFile) -> list[pytest.MarkDecorator]:
    """Whatever runs on the GPUs wants them for itself."""
    marks = [pytest.mark.gpu(kernel.gpus), pytest.mark.alone]
    return [*marks, pytest.mark.slow] if kernel.slow else marks


@pytest.fixture(scope="module")
def warm() -> None:
    """What a first evaluation opens for good is not left behind by the kernel that follows it."""
    PREFORK.start()
    HURRIED.start()
    with end_kept():
        _judge(ALL_REDUCE)


@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize("kernel", _parameters(HONEST))
def test_an_honest_kernel_is_ok(kernel: KernelFile, tmp_path: Path) -> None:
    with _gpus_given_back(), nothing_left_behind(tmp_path), end_kept():
        _judge(kernel)


@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize("kernel", _parameters(MISBEHAVING))
def test_a_misbehaving_kernel_gets_its_verdict_and_harms_nothing(
    kernel: KernelFile, tmp_path: Path
) -> None:
    with _gpus_given_back(), nothing_left_behind(tmp_path), end_kept():
        _judge(kernel)
    if kernel.threatens:
        _judge(ALL_REDUCE)


def test_there_are_enough_kernels_of_both_kinds() -> None:
    assert len(MISBEHAVING) >= 25
    assert len(HONEST) >= 12
    assert {verdict for kernel in HONEST for verdict in kernel.verdicts} == {Verdict.OK}


def test_no_two_kernels_share_a_purpose() -> None:
    everywhere = [
        *MISBEHAVING,
        *HONEST,
        *all_in("misbehaving"),
        *all_in("honest"),
        *all_in("gated"),
    ]
    purposes = [kernel.purpose for kernel in everywhere]
    assert len(set(purposes)) == len(purposes)


@pytest.mark.parametrize("kernel", [pytest.param(k, id=k.path.stem) for k in MISBEHAVING + HONEST])
def test_a_kernel_says_what_it_is(kernel: KernelFile) -> None:
    source = kernel.path.read_text()
    assert kernel.device is Device.CUDA
    assert kernel.flags & set(PATTERNS) <= set(scan_source(source))
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    assert "solution" in {function.name for function in functions}
    # It can put a host's GPUs out of service.
    assert not [word for word in ("multimem", "multicast", "nvls") if word in source.lower()]


@pytest.mark.parametrize("kernel", [pytest.param(k, id=k.path.stem) for k in MISBEHAVING])
def test_what_a_kernel_takes_out_of_frames_is_there(kernel: KernelFile) -> None:
    """One that reads what has another name by now tries nothing, and fails like any broken one."""
    reads = FRAME_READ.findall(kernel.path.read_text())
    code = {"_getframe(1)": Slot.call.__code__, "frame": run_rank.__code__}
    known = {whose: {*of.co_varnames, *of.co_cellvars} for whose, of in code.items()}
    assert [(whose, name) for whose, name in reads if name not in known[whose]] == []
    assert bool(reads) is ("_getframe" in kernel.path.read_text())


def test_a_kernel_for_gpus_has_the_limits_and_the_size_of_gpus(tmp_path: Path) -> None:
    kernel = named("gpu/misbehaving", "endless_kernel")
    assert kernel.job.limits == replace(limits_of(Device.CUDA), verify_s=5.0)
    assert (kernel.job.size, kernel.job.dtype) == ("standard", Dtype.BFLOAT16)
    path = tmp_path / "kernel.py"
    path.write_text("# verdict: ok\n# cheat: x\n# device: cuda\n# size: large\n# trials: 2\n")
    job = read(path).job
    assert (job.device, job.size, job.trials) == (Device.CUDA, "large", 2)


@pytest.mark.parametrize(
    ("expected", "found", "complaint"),
    [
        ({"verdicts": frozenset({Verdict.OOM})}, {}, "ok instead of oom"),
        ({"cause": "gpu_memory"}, {}, "cause None instead of gpu_memory"),
        ({"flags": frozenset({"uses_nccl"})}, {}, "without the flags uses_nccl"),
        ({"ranks": (1,)}, {"ranks": (0,)}, "names ranks (0,) instead of (1,)"),
        ({"log": "hi"}, {"logs": (RankLog(rank=0, text="ho"),)}, "no log says 'hi'"),
        ({"at_least_us": 51.0}, {}, "50.0 us, less than 51.0 us"),
        ({"speedup_below": 1.9}, {}, "1.90x, not below 1.9x"),
    ],
)
def test_what_differs_from_a_header_is_said(
    expected: dict[str, Any], found: dict[str, Any], complaint: str
) -> None:
    agreeing = KernelFile(path=Path(), purpose="p", verdicts=frozenset({Verdict.OK}))
    assert agreeing.complaints(REPORT) == []
    assert replace(agreeing, **expected).complaints(replace(REPORT, **found)) == [complaint]


def _judge(kernel: KernelFile) -> Report:
    report = judged(kernel.job, hurried=kernel.only_passes)
    assert not kernel.complaints(report), f"{report.message} ({report.evidence})"
    return report


@contextlib.contextmanager
def _gpus_given_back() -> Iterator[None]:
    """Fails where the block leaves memory of a GPU taken."""
    present = gpus.present()
    before = gpus.used_bytes(present)
    yield
    deadline = time.monotonic() + GIVEN_BACK_S
    while _taken(before, now := gpus.used_bytes(present)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not _taken(before, now), f"bytes taken on the GPUs: {before} before, {now} after"


def _taken(before: list[int], now: list[int]) -> bool:
    return any(b > a + SLACK_BYTES for a, b in zip(before, now, strict=True))
