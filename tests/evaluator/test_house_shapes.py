"""House kernels are right whatever shapes come before."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator.sandbox.sandbox import REPOSITORY
from tests.evaluator.house_files import all_house_kernels
from tests.evaluator.kernel_files import named

KERNELS = {kernel.slug: kernel for kernel in all_house_kernels()}
# One that stores into halves, one that sends parts of unknown lengths, one whose blocks wait for an
# earlier call; the others in `make test-all`.
JUDGED = ("alltoall", "gnn_feature_exchange_all2all", "fla_gated_deltanet_cp")
HEADER = """\
# house: 1 allreduce
# mechanism: NCCL
# limiter: none
# exchanges: 1

"""

pytestmark = pytest.mark.skipif(
    not importlib.util.find_spec("triton"), reason="Triton is not installed"
)


def _called(*paths: Path) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "tests.evaluator.house_shapes", *map(str, paths)]
    return subprocess.run(program, cwd=REPOSITORY, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "slug",
    [
        pytest.param(slug, marks=[] if slug in JUDGED else [pytest.mark.similar])
        for slug in sorted(KERNELS)
    ],
)
def test_a_house_kernel_is_right_when_shapes_come_back(slug: str) -> None:
    done = _called(KERNELS[slug].path)
    assert done.returncode == 0, done.stdout[-3000:]


def test_a_file_that_keeps_an_answer_by_shape_is_told(tmp_path: Path) -> None:
    path = tmp_path / "1_allreduce_triton.py"
    path.write_text(HEADER + named("misbehaving", "replay_by_shape").path.read_text())
    done = _called(path)
    assert done.returncode == 1
    assert "turn 1 of (0, 0, 4, 0, 5, 4, 4, 0): output 0" in done.stdout
