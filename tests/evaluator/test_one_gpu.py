"""Where every rank has the same GPU: what indices mean, and what it lacks. No GPU is needed to see
it."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from evaluator.host.host import Host
from evaluator.judge.findings import Findings
from evaluator.judge.run_context import RunContext
from evaluator.messages.faults import Fault
from evaluator.messages.job import Device, Job, Placement
from evaluator.messages.report import Phase, Verdict
from evaluator.rank.one_gpu import OnlyGpu, names_devices
from evaluator.sandbox.sandbox import REPOSITORY
from tests.evaluator.test_messages import REPORT


@pytest.mark.parametrize(
    "source",
    [
        'device = torch.device("cuda", rank)',
        'x = x.to(f"cuda:{dist.get_rank()}")',
        "torch.cuda.set_device(rank)",
        'torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))',
        "y = x.cuda(rank)",
        "torch.empty(4, device=rank)",
    ],
)
def test_a_source_that_names_gpus_is_known(source: str) -> None:
    assert names_devices(source)
    assert not names_devices("x = torch.empty_like(y).cuda()\ndist.all_reduce(x)")


def test_every_index_means_the_first() -> None:
    def given(*args: Any, **kwargs: Any) -> tuple[list[Any], dict[str, Any]]:
        return list(args), kwargs

    def seen(name: str, *args: Any, **kwargs: Any) -> tuple[list[Any], dict[str, Any]]:
        given.__name__ = name
        found: tuple[list[Any], dict[str, Any]] = OnlyGpu().__torch_function__(
            given, (), args, kwargs
        )
        return found

    first, third = torch.device("cuda", 0), torch.device("cuda", 2)
    assert seen("empty", 3, device=third) == ([3], {"device": first})
    assert seen("empty", 3, device=2) == ([3], {"device": 0})
    assert seen("to", "x", "cuda:2", torch.half) == (["x", "cuda:0", torch.half], {})
    assert seen("to", "x", torch.device("cpu")) == (["x", torch.device("cpu")], {})
    assert seen("cuda", "x", 2) == (["x", 0], {})
    assert seen("add", 1, 2) == ([1, 2], {})


def test_torch_is_told_so_in_a_rank() -> None:
    program = (
        "import torch\nfrom evaluator.rank import one_gpu\none_gpu.install(4)\n"
        "assert torch.device('cuda', 3) == torch.device('cuda:2') == torch.device('cuda:0')\n"
        "assert torch.device('cuda', index=1).index == 0 and torch.device('cuda').index is None\n"
        "assert torch.cuda.device(3).idx == 0 and torch.cuda.device(-1).idx == -1\n"
        "assert torch.cuda.device_count() == 4 and torch.cuda.can_device_access_peer(0, 3)\n"
        "assert torch.zeros(2, device='cpu').sum().item() == 0\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, check=True)


@pytest.mark.parametrize("placement", Placement)
def test_a_full_gpu_that_others_share_is_not_the_kernels_fault(placement: Placement) -> None:
    job = Job(problem="allreduce", source="x", device=Device.CUDA, placement=placement)
    process = SimpleNamespace(process=SimpleNamespace(pid=os.getpid()))
    alive: Any = {
        "pool": SimpleNamespace(host=Host(gpus=(), threads=1)),
        "submission": SimpleNamespace(sandbox=process),
        "emit": lambda progress: None,
    }
    context = RunContext(job=job, findings=Findings(phase=Phase.VERIFY), **alive)
    fault = context.fault_of_full_gpu()
    is_shared = placement is Placement.SHARED
    assert (fault.verdict if fault else None) == (Verdict.HOST_UNSUPPORTED if is_shared else None)


@pytest.mark.parametrize(
    ("device", "placement", "verdict"),
    [
        (Device.CUDA, Placement.SHARED, Verdict.HOST_UNSUPPORTED),
        (Device.CUDA, Placement.FULL, Verdict.OOM),
        (Device.CPU, Placement.SHARED, Verdict.OOM),
    ],
)
def test_a_report_spares_what_only_one_gpu_lacks(
    device: Device, placement: Placement, verdict: Verdict
) -> None:
    job = Job(problem="allreduce", source="x", device=device, placement=placement)
    known = {name: getattr(REPORT, name) for name in ("environment", "isolation", "problem")}
    fault = Fault(Verdict.OOM, "gpu_memory", "rank 1: CUDA out of memory", ranks=(1,))
    report = Findings().report(job, fault, {**known, "problem_digest": "p"})
    assert (report.verdict, report.placement, report.ranks) == (verdict, placement, (1,))
    assert "CUDA out of memory" in report.message
