"""What the judge's clock makes of a call is told apart from what the call takes."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from evaluator.sandbox.sandbox import REPOSITORY

FAST, SLOW = 50.0, 90.0
KERNELS = ["tensor * 1", "clone, all-reduce"]


@pytest.fixture
def batch_parts(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks"))
    return importlib.import_module("batch_parts")


def test_a_call_is_what_a_batch_takes_less_an_empty_one(batch_parts: ModuleType) -> None:
    own = {(False, False): 640.0, (False, True): 40.0, (True, False): 900.0, (True, True): 240.0}
    found = {
        kind: [
            batch_parts.Batch(us=us, loop_us=FAST),
            *[batch_parts.Batch(us=2 * us, loop_us=SLOW)] * 2,
        ]
        for kind, us in own.items()
    }
    every, fast = batch_parts.summed_up(found, calls=60)
    assert every == {"batches": "all", "counts": [3] * 4, "call_us": 20.0, "judged_us": 22.0}
    assert fast == {"batches": "own", "counts": [1] * 4, "call_us": 10.0, "judged_us": 11.0}


def test_what_no_batch_shows_is_not_told(batch_parts: ModuleType) -> None:
    found = {
        (is_followed, is_empty): [batch_parts.Batch(us=1.0, loop_us=SLOW if is_empty else FAST)]
        for is_followed in (False, True)
        for is_empty in (False, True)
    }
    _, fast = batch_parts.summed_up(found, calls=60)
    assert fast == {"batches": "own", "counts": [1, 0, 1, 0]}


def test_it_measures_calls_as_the_judge_makes_them(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    setting = ["--device", "cpu", "--size", "tiny", "--dtype", "float32", "--rounds", "2"]
    program = REPOSITORY / "benchmarks" / "batch_parts.py"
    subprocess.run([sys.executable, str(program), str(out), *setting], check=True, timeout=120)
    rows = [row for row in json.loads(out.read_text())["rows"] if row["batches"] == "all"]
    assert [row["kernel"] for row in rows] == KERNELS
    assert all(row["counts"] == [2] * 4 and row["judged_us"] for row in rows)
