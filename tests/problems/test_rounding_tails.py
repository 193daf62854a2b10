"""`benchmarks/rounding_tails.py` says how far references are off, and how many elements."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType

import pytest
import torch

from problems.spec import Tolerance

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def tails(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("rounding_tails")


def test_elements_beyond_multiples_of_a_tolerance_are_counted(tails: ModuleType) -> None:
    truth = torch.ones(100)
    got = truth.clone()
    got[:3] += torch.tensor([0.06, 0.12, 0.3])
    tolerance = Tolerance(atol=0.1, rtol=0.0, rms=0.5)
    told = tails._told(got, truth, tolerance)
    assert told["beyond"] == {"0.5": 3, "1.0": 2, "2.0": 1, "4.0": 0}
    assert told["max_error"] == pytest.approx(3.0)
    own = {**told, "problem": "one", "dtype": "float32"}
    (line,) = tails.together([[own], [{**own, "max_error": 0.1}]])
    assert (line["elements"], line["max_error"], line["beyond"]["1.0"]) == (200, 3.0, 4)
    assert list(tails.summary([{**own, **line}]))
    quiet = {"max_error": 0.5, "rms_share": 0.5}
    assert not list(tails.summary([{**own, **line, **quiet}]))


def test_what_is_known_is_not_done_again(
    tails: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "tails.jsonl"
    program = ["rounding_tails.py", str(out), "allreduce", "--size", "tiny", "--trials"]
    for trials in ("1", "2"):
        monkeypatch.setattr("sys.argv", [*program, trials])
        tails.main()
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["trial"] for line in lines] == [0, 1]
    assert all(0 < line["max_error"] < 1 and not line["beyond"]["1.0"] for line in lines)
