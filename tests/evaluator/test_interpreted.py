"""Triton kernels on processors, through the whole judge: by its interpreter, peers' memory too."""

from __future__ import annotations

import importlib.util
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator import __main__ as command
from evaluator.diagnosis.interpreter import checkable, is_interpreted
from evaluator.messages.faults import EvaluatorError, Fault
from evaluator.messages.job import Backend, Device, Dtype, Job, Placement
from evaluator.messages.report import Verdict
from evaluator.sandbox import processor_support
from tests.evaluator.judging import judged
from tests.evaluator.kernel_files import KernelFile, all_in, named

KERNELS = all_in("interpreted")
TRITON = "import triton\n"
HAS_TRITON = importlib.util.find_spec("triton") is not None


def _parameter(kernel: KernelFile) -> object:
    marks = [pytest.mark.slow] if kernel.slow else []
    return pytest.param(kernel, id=kernel.path.stem, marks=marks)


@pytest.mark.skipif(not HAS_TRITON, reason="Triton is not installed")
@pytest.mark.parametrize("kernel", [_parameter(kernel) for kernel in KERNELS])
def test_a_triton_kernel_is_judged_on_processors(kernel: KernelFile) -> None:
    report = judged(kernel.job, hurried=True)
    assert not kernel.complaints(report), f"{report.message} ({report.evidence})"


@pytest.mark.parametrize(
    ("what", "source"),
    [
        ("CUDA code", 'CUDA = """\n__global__ void f() {}\n"""\n'),
        ("CUDA code", "load_inline('x', cpp_sources='', cuda_sources=CUDA)\n"),
        ("CUDA code", "ext = compile_cuda_extension('x', CUDA)\n"),
        ("NVSHMEM", "symm_mem.set_backend('NVSHMEM')\n"),
        ("inline assembly", TRITON + "tl.inline_asm_elementwise('mov.u32 $0, %tid.x;')\n"),
        ("inline assembly", "from utils.triton_utils import blockwise_barrier\n"),
        ("a GPU", "buffer = symm_mem.empty(9, device='cuda')\n"),
        ("a GPU", "here = torch.device(f'cuda:{rank}')\n"),
        ("a GPU", "torch.cuda.synchronize()\n"),
        ("a GPU", "def solution(x):\n    assert x.is_cuda\n"),
        ("a GPU", "torch.ops.symm_mem.one_shot_all_reduce(x, 'sum', name)\n"),
    ],
)
def test_what_processors_cannot_do_is_never_the_kernels_fault(what: str, source: str) -> None:
    report = judged(Job(problem="allreduce", source=source, backend=Backend.CUDA))
    assert report.verdict is Verdict.HOST_UNSUPPORTED
    assert report.message.startswith(f"the kernel needs {what} (")
    assert report.message.endswith(", which cannot be checked on processors")


def test_where_triton_is_not_installed_its_kernels_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    job = Job(problem="allreduce", source=TRITON, backend=Backend.TRITON)
    assert processor_support.lacking(job) is None
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert processor_support.lacking(job) == "the kernel needs Triton; it is not installed here"
    tried = "try:\n    import triton\nexcept ImportError:\n    triton = None\n"
    assert processor_support.lacking(replace(job, source=tried)) is None


@pytest.mark.parametrize("program", processor_support.BUILDERS)
def test_where_nothing_compiles_kernels_in_cpp_wait(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = named("honest", "cpp_sum").job
    assert processor_support.lacking(job) is None
    found = shutil.which
    monkeypatch.setattr(
        shutil, "which", lambda name, path: None if name == program else found(name, path=path)
    )
    needed = f"the kernel needs {processor_support.BUILDERS[program]}; it is not installed here"
    assert processor_support.lacking(job) == needed
    assert processor_support.lacking(named("honest", "all_reduce").job) is None


def test_what_does_not_parse_is_a_failure_everywhere() -> None:
    source = 'CUDA = """\n__global__ void f() {}\n"""\ndef solution(:\n'
    report = judged(Job(problem="allreduce", source=source, backend=Backend.CUDA))
    assert (report.verdict, report.cause) == (Verdict.BUILD_ERROR, "syntax")


def test_another_way_for_processors_is_taken() -> None:
    source = (
        "import torch\nimport torch.distributed as dist\n"
        "def solution(tensor):\n"
        "    if torch.cuda.is_available():\n        torch.cuda.synchronize()\n"
        "    raise ValueError('the way for processors')\n"
    )
    report = judged(Job(problem="allreduce", source=source, backend=Backend.CUDA))
    assert (report.verdict, report.evidence) == (
        Verdict.RUNTIME_ERROR,
        "ValueError: the way for processors",
    )


def _fault(verdict: Verdict, cause: str = "values") -> Fault:
    return Fault(verdict, cause, "it failed")


@pytest.mark.parametrize(
    ("fault", "dtype", "stays"),
    [
        (_fault(Verdict.OUTPUT_MISMATCH), Dtype.FLOAT32, True),
        (_fault(Verdict.OUTPUT_MISMATCH), Dtype.FLOAT16, True),
        (_fault(Verdict.OUTPUT_MISMATCH), Dtype.BFLOAT16, False),
        (_fault(Verdict.NONFINITE_OUTPUT), Dtype.BFLOAT16, False),
        (_fault(Verdict.LATE_OUTPUT, "unwritten"), Dtype.BFLOAT16, False),
        (_fault(Verdict.LATE_OUTPUT, "unwritten"), Dtype.FLOAT32, True),
        (_fault(Verdict.SHAPE_MISMATCH, "shape"), Dtype.BFLOAT16, True),
        (_fault(Verdict.RUNTIME_ERROR, "signal_11"), Dtype.FLOAT32, True),
        (_fault(Verdict.RUNTIME_ERROR, "interpreter"), Dtype.FLOAT32, False),
        (_fault(Verdict.TIMEOUT, "deadlock"), Dtype.FLOAT32, False),
        (_fault(Verdict.PROTOCOL_VIOLATION, "guard_band"), Dtype.BFLOAT16, True),
    ],
)
def test_only_what_may_be_the_interpreters_is_not_blamed(
    fault: Fault, dtype: Dtype, stays: bool
) -> None:
    job = Job(problem="allreduce", source=TRITON, dtype=dtype, backend=Backend.TRITON)
    found = checkable(fault, job)
    assert (found is fault) is stays
    if not stays:
        assert (found.verdict, found.cause) == (Verdict.HOST_UNSUPPORTED, "interpreter")
        assert "it failed" in found.message
    for other in (replace(job, device=Device.CUDA), replace(job, source="import torch")):
        assert not is_interpreted(other)
        assert checkable(fault, other) is fault
    assert checkable(fault, replace(job, backend=Backend.PYTORCH)) is fault


@pytest.mark.parametrize(
    ("source", "words", "placement"),
    [
        (TRITON, [], Placement.SHARED),
        (TRITON, ["--placement", "full"], Placement.FULL),
        (TRITON, ["--device", "cuda"], Placement.FULL),
        ("import torch\n", [], Placement.FULL),
    ],
)
def test_what_the_interpreter_runs_is_not_timed_unless_asked(
    source: str,
    words: list[str],
    placement: Placement,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jobs: list[Job] = []

    def refuse(job: Job, on_progress: object) -> None:
        jobs.append(job)
        raise EvaluatorError("not now")

    monkeypatch.setattr(command, "evaluate", refuse)
    kernel = tmp_path / "kernel.py"
    kernel.write_text(source)
    assert command.main(["run", "allreduce", str(kernel), *words]) == 2
    assert [job.placement for job in jobs] == [placement]
