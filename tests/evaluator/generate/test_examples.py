"""The examples that models are shown are right: on gloo everywhere, on GPUs where there are two."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator.generate.prompting import FOLDER

ROOT = Path(__file__).resolve().parents[3]
RANKS = 2
# Each rank calls the example with matrices of its own and compares with what the problem asks for.
RANK = """
import sys
import torch
import torch.distributed as dist
from problems.running.mesh import join_world

device, store, rank, path = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
place = join_world(device, store, rank, {ranks})
names = {{}}
exec(compile(open(path).read(), path, "exec"), names)
exact, short = torch.float32, torch.bfloat16
for rows, dtype in ((64, exact), (65, exact), (1000, short), (3, exact)):
    given = [torch.arange(rows * 7.0).view(rows, 7) * (1 + r) % 64 for r in range({ranks})]
    given = [one.to(place, dtype) for one in given]
    own = given[rank].clone()
    for _ in range(20):
        out = names["solution"](own)
    expected = given[rank] + given[(rank + 1) % {ranks}]
    assert torch.equal(out, expected), (rows, dtype)
    assert torch.equal(own, given[rank])
dist.destroy_process_group()
"""


def _run(backend: str, device: str, folder: Path) -> None:
    text = (FOLDER / f"example_{backend}.md").read_text()
    path = folder / "example.py"
    path.write_text(text.removeprefix("```python\n").removesuffix("```\n"))
    search = os.pathsep.join([str(ROOT), str(ROOT / "evaluator" / "compat")])
    processes = [
        subprocess.Popen(
            [
                sys.executable,
                "-c",
                RANK.format(ranks=RANKS),
                *map(str, (device, folder / "store", rank, path)),
            ],
            env={**os.environ, "PYTHONPATH": search},
            cwd=ROOT,
        )
        for rank in range(RANKS)
    ]
    assert [process.wait(timeout=300) for process in processes] == [0] * RANKS


@pytest.mark.slow
def test_the_example_in_pytorch_is_right(tmp_path: Path) -> None:
    _run("pytorch", "cpu", tmp_path)


@pytest.mark.gpu(2)
@pytest.mark.parametrize(
    "backend", ["pytorch", "triton", pytest.param("cuda", marks=pytest.mark.nvcc)]
)
def test_the_examples_for_gpus_are_right(backend: str, tmp_path: Path) -> None:
    _run(backend, "cuda", tmp_path)
