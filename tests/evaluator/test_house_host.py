"""`benchmarks/house_host.py` counts what a call does, and tells of what it cannot time."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.evaluator.house_files import HOUSE

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "house_host.py"
TIMEOUT_S = 300

pytestmark = pytest.mark.skipif(
    not importlib.util.find_spec("triton"), reason="Triton is not installed"
)


def _lines(*paths: Path) -> list[str]:
    program = [sys.executable, str(BENCHMARK), *map(str, paths)]
    ended = subprocess.run(program, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    assert ended.returncode == 0, ended.stderr[-3000:]
    return ended.stdout.splitlines()


def test_launches_and_operations_of_a_call_are_counted() -> None:
    swap, product, summary = _lines(
        HOUSE / "8_alltoall_triton.py", HOUSE / "11_allgather_gemm_AT_triton.py"
    )
    for line, operations in ((swap, 0), (product, 1)):
        assert re.search(rf" [\d.]+ us +1\.0 launches +{operations}\.0 operations", line), line
    assert summary.startswith("2 of 2 told, ")


def test_a_call_whose_host_asks_for_a_result_is_not_told(tmp_path: Path) -> None:
    path = tmp_path / "8_alltoall_triton.py"
    source = (HOUSE / path.name).read_text()
    asking = source.replace(
        "    return received\n", "    received.max().item()\n    return received\n"
    )
    assert asking != source
    path.write_text(asking)
    told, summary = _lines(path)
    assert told.endswith("not told: ReadsBackError: aten::_local_scalar_dense")
    assert summary.startswith("0 of 1 told, ")
