"""House kernels: every file's name, header, length and imports, and one of each family judged."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import problems
from evaluator.diagnosis.scan import scan_source
from evaluator.messages.job import Backend, Dtype, Job, Placement
from evaluator.messages.needs import Ability, needs
from tests.evaluator.house_files import (
    HouseKernel,
    MalformedHouseKernel,
    all_house_kernels,
    jitted,
    read,
)
from tests.evaluator.judging import judged

KERNELS = all_house_kernels()
LONGEST = 200  # lines
ALLOWED = {"torch", "triton", "utils", *sys.stdlib_module_names}
# Triton's launcher has variables of these names.
TAKEN = {"params", "options", "specialization", "backend", "grid", "warmup"}
# Cheap ones, one of each family: on processors a kernel takes as long as the interpreter does.
JUDGED = (
    "allreduce",
    *(pytest.param(slug, marks=pytest.mark.similar) for slug in ("grad_acc_loss", "alltoall")),
)


def _imported(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.path.stem)
def test_a_house_kernel_is_a_file_like_any_submission(kernel: HouseKernel) -> None:
    number = int(problems.load(problems.find(kernel.slug)).problem.number)
    assert kernel.number == number
    assert len(kernel.source.splitlines()) <= LONGEST
    assert set(_imported(kernel.source)) <= ALLOWED
    assert kernel.mechanism
    assert kernel.limiter
    assert Ability.MULTICAST not in needs(kernel.source, kernel.backend, world_size=2)
    assert ("uses_nccl" in scan_source(kernel.source)) == ("NCCL" in kernel.mechanism)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.path.stem)
def test_no_argument_of_a_launch_has_a_name_of_tritons(kernel: HouseKernel) -> None:
    functions = jitted(kernel.source).values()
    assert functions or kernel.backend is not Backend.TRITON
    assert not TAKEN & {argument.arg for function in functions for argument in function.args.args}


def test_no_problem_has_two_house_kernels() -> None:
    slugs = [kernel.slug for kernel in KERNELS]
    assert len(slugs) == len(set(slugs))


def test_what_a_header_lacks_is_told(tmp_path: Path) -> None:
    path = tmp_path / "1_allreduce_triton.py"
    path.write_text("# house: 1 allreduce\n# mechanism: stores\nimport torch\n")
    with pytest.raises(MalformedHouseKernel, match="found house, mechanism"):
        read(path)
    path.write_text("# house: 2 allgather\n# mechanism: a\n#   b\n# limiter: c\n# exchanges: 1\n")
    with pytest.raises(MalformedHouseKernel, match="says 2 allgather"):
        read(path)


@pytest.mark.skipif(not importlib.util.find_spec("triton"), reason="Triton is not installed")
@pytest.mark.parametrize("slug", JUDGED)
def test_one_of_each_family_is_right_by_the_interpreter(slug: str) -> None:
    kernel = next(kernel for kernel in KERNELS if kernel.slug == slug)
    job = Job(
        problem=slug,
        source=kernel.source,
        backend=kernel.backend,
        placement=Placement.SHARED,
        dtype=Dtype.BFLOAT16,
        trials=3,
    )
    report = judged(job, hurried=True)
    assert report.verdict == "ok", f"{report.message} ({report.evidence})"
