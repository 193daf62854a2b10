"""Every house kernel compiles for a Hopper GPU, and what does not is told with its line."""

from __future__ import annotations

import gzip
import importlib.util
import json
import subprocess
import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import pytest

from evaluator.sandbox.sandbox import REPOSITORY
from tests.evaluator import compile_house
from tests.evaluator.house_files import HOUSE, REPORTS, TIMED, all_house_kernels, read

SAMPLE = 20  # the last of so many is compiled though a GPU has run it; the first takes longest
EDGES = HOUSE / "69_gnn_negative_scoring_triton.py"
OWN = "positive = tl.load("
NAMED = "tl.sigmoid(positive)"
TIMEOUT_S = 1200
LAUNCH = "        rank_edges[(blocks,)]("

pytestmark = pytest.mark.skipif(
    not importlib.util.find_spec("triton"), reason="Triton is not installed"
)


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", compile_house.__name__, *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )


def _changed(folder: Path, *changes: tuple[str, str]) -> Path:
    """Write a house kernel with other words in it; each of the old ones occurs once."""
    source = EDGES.read_text()
    for old, new in changes:
        assert source.count(old) == 1
        source = source.replace(old, new)
    path = folder / EDGES.name
    path.write_text(source)
    return path


def _compiled(files: Sequence[Path], *options: str) -> None:
    ended = _run(*map(str, files), *options)
    assert ended.returncode == 0, f"{ended.stdout}{ended.stderr[-3000:]}"
    assert f"of {len(files)} files, 0 faults" in ended.stdout


def test_a_house_kernel_that_no_gpu_has_run_compiles_for_one() -> None:
    """Shipped reports are of Hopper GPUs, in bfloat16. A sample of their files is tried, too."""
    texts = [gzip.decompress(path.read_bytes()).splitlines() for path in (*REPORTS, TIMED)]
    lines = map(json.loads, chain.from_iterable(texts))
    ran = {line["source"] for line in lines if line["report"]["verdict"] == "ok"}
    kernels = enumerate(all_house_kernels(), start=1)
    _compiled([own.path for at, own in kernels if own.source not in ran or at % SAMPLE == 0])


@pytest.mark.slow
@pytest.mark.similar
def test_every_house_kernel_compiles_for_a_hopper_gpu_in_all_dtypes() -> None:
    files = [kernel.path for kernel in all_house_kernels()]
    _compiled(files, "--dtypes", "float32,float16,bfloat16", "--hidden")


def test_what_the_interpreter_takes_and_the_compiler_does_not_is_told(tmp_path: Path) -> None:
    """A variable that changes its shape in a loop: house kernel 69 had it until a GPU refused."""
    path = _changed(tmp_path, (OWN, "scores = tl.load("), (NAMED, "tl.sigmoid(scores)"))
    ended = _run(str(path))
    lines = path.read_text().splitlines()
    loop = next(n for n, line in enumerate(lines, 1) if "for begins in range" in line)
    assert "launches recorded" in ended.stdout
    assert f"{path}:{loop}: rank_edges: CompilationError: " in ended.stdout
    assert "Loop-carried variable scores" in ended.stdout
    assert "of 1 files, 1 faults" in ended.stdout
    assert ended.returncode == 1


def test_a_rank_that_raises_ends_one_that_waits_for_it(tmp_path: Path) -> None:
    raising = f"        assert dist.get_rank() == 0\n{LAUNCH}"
    ended = _run(str(_changed(tmp_path, (LAUNCH, raising))), "--limit-s", str(2 * TIMEOUT_S))
    assert "not interpreted: " in ended.stdout
    assert "assert dist.get_rank() == 0" in ended.stdout
    assert ended.returncode == 1


def test_a_kernel_that_no_launch_reaches_is_told() -> None:
    assert list(compile_house.launched(EDGES)) == ["rank_edges", "collect"]
    lines = EDGES.read_text().splitlines()
    told = [
        f"{EDGES}:{number}: no launch reached {name}"
        for name in ("rank_edges", "collect")
        for number, line in enumerate(lines, 1)
        if line.startswith(f"def {name}(")
    ]
    assert list(compile_house.faults(read(EDGES), [])) == told
