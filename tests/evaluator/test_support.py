"""What a host lacks ends a run without a word against the kernel."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from evaluator.host import gpus
from evaluator.host.gpus import Gpu
from evaluator.host.host import Host
from evaluator.messages.job import Backend, Device, Job, Placement
from evaluator.messages.needs import Ability
from evaluator.probes.gpu import ATTEMPTS
from evaluator.sandbox.support import LACKS, abilities, lacking
from problems.spec import Problem, Requirements

JOB = Job(problem="allreduce", source="x", size="standard", device=Device.CUDA)
PROBLEM = Problem(
    number=1,
    title="t",
    source="s",
    domain="d",
    summary="s",
    statement="s",
    outputs=("out",),
    requirements=Requirements(memory_gib=40),
)


def host(count: int = 2, gib: int = 141) -> Host:
    own = (
        Gpu(index=i, minor=i, uuid=f"GPU-{i}", name="NVIDIA H200", memory_bytes=gib << 30)
        for i in range(count)
    )
    return Host(gpus=tuple(own), threads=1)


@pytest.fixture(autouse=True)
def _linked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "unlinked", lambda _: [])
    monkeypatch.delenv("THUNDERKITTENS_ROOT", raising=False)


def test_a_host_that_has_everything_lacks_nothing() -> None:
    assert lacking(JOB, PROBLEM, host()) is None
    assert lacking(replace(JOB, device=Device.CPU), PROBLEM, host(0)) is None


def test_gpus_are_counted_and_weighed() -> None:
    assert "offers 1" in str(lacking(JOB, PROBLEM, host(1)))
    assert "needs 40 GiB" in str(lacking(JOB, PROBLEM, host(gib=24)))
    assert lacking(replace(JOB, size="tiny"), PROBLEM, host(gib=24)) is None


def test_ranks_that_share_a_gpu_need_one_without_a_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "unlinked", lambda _: [(0, 1)])
    job = replace(JOB, placement=Placement.SHARED, world_size=8)
    assert lacking(job, PROBLEM, host(1)) is None
    assert "offers none" in str(lacking(job, PROBLEM, host(0)))
    assert "needs 40 GiB" in str(lacking(job, PROBLEM, host(1, gib=24)))


@pytest.mark.parametrize("source", ["fast(hdl.multicast_ptr)", 'C = """\n#include <nccl.h>\n"""'])
def test_what_is_between_gpus_no_host_has_on_one(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_SYMM_MEM_DISABLE_MULTICAST", "0")
    job = replace(JOB, source=source)
    assert lacking(job, PROBLEM, host()) is None
    shared = lacking(replace(job, placement=Placement.SHARED), PROBLEM, host(1))
    assert "ranks that share a GPU cannot have it" in str(shared)


def test_gpus_without_a_link_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "unlinked", lambda _: [(0, 1)])
    assert "GPUs 0 and 1" in str(lacking(JOB, PROBLEM, host()))
    alone = replace(PROBLEM, requirements=Requirements(peer_access=False))
    assert lacking(JOB, alone, host()) is None


def test_multicast_is_what_the_host_says(monkeypatch: pytest.MonkeyPatch) -> None:
    wants = replace(PROBLEM, requirements=Requirements(multicast=True))
    assert "multicast" in str(lacking(JOB, wants, host()))
    monkeypatch.setenv("TORCH_SYMM_MEM_DISABLE_MULTICAST", "0")
    assert lacking(JOB, wants, host()) is None


def test_thunderkittens_is_asked_for_by_its_setting(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/nvcc")
    job = replace(JOB, backend=Backend.PARALLELKITTENS, source='#include "kittens.cuh"')
    assert "THUNDERKITTENS_ROOT=/opt/thunderkittens" in str(lacking(job, PROBLEM, host()))
    monkeypatch.setenv("THUNDERKITTENS_ROOT", str(tmp_path_factory.mktemp("kittens")))
    assert lacking(job, PROBLEM, host()) is None


def test_a_compiler_is_needed_where_something_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setenv("CUDA_HOME", "/nowhere")
    assert "nvcc" in str(lacking(replace(JOB, backend=Backend.CUDA), PROBLEM, host()))
    assert lacking(JOB, PROBLEM, host()) is None


@pytest.mark.parametrize(
    ("lacks", "source", "missing"),
    [
        ("symmetric memory, strided", "import torch.distributed._symmetric_memory", True),
        ("symmetric memory, strided", "import torch.distributed as dist", False),
        ("Triton; nvcc", "load_inline(name='x')", True),
        ("Triton; nvcc", "dist.all_reduce(x)", False),
        ("NCCL", "dist.all_reduce(x)", True),
    ],
)
def test_what_does_not_work_in_a_sandbox_counts_where_the_source_needs_it(
    lacks: str, source: str, missing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LACKS, lacks)
    found = lacking(replace(JOB, source=source), PROBLEM, host())
    assert (found is not None) is missing


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (
            "fast(hdl.multicast_ptr)",
            "multicast (multicast_ptr, line 1); the operator of this host",
        ),
        (
            "s.set_backend('NVSHMEM')",
            "(set_backend('NVSHMEM'), line 1); no host of this judge",
        ),
        (
            'C = """\n#include "kittens.cuh"\nint NUM_DEVICES = 8;\n"""',
            "this run has another number",
        ),
    ],
)
def test_a_need_is_named_with_why_it_is_not_met(
    source: str, reason: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("THUNDERKITTENS_ROOT", str(tmp_path))
    assert reason in str(lacking(replace(JOB, source=source), PROBLEM, host()))


def test_a_host_tells_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LACKS, "symmetric memory, strided; NCCL")
    monkeypatch.setenv("TORCH_SYMM_MEM_DISABLE_MULTICAST", "0")
    found = abilities()
    assert {Ability.MULTICAST, Ability.PEER_ACCESS} <= found
    assert not {Ability.SYMMETRIC_MEMORY, Ability.NCCL, Ability.OTHER_RANKS, Ability.HIP} & found


def test_every_probe_of_gpus_tells_of_an_ability(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ATTEMPTS:
        monkeypatch.setenv(LACKS, name)
        assert frozenset(Ability) - abilities()
