"""What `benchmarks/house_profile.py` reads off timelines, and that its page says the same."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.benchmark_scripts import script
from tests.evaluator.house_files import REPORTS

ROOT = Path(__file__).resolve().parents[2]
SOURCE = """
@triton.jit
def wait(flag):
    while tl.load(flag) == 0:
        pass

@triton.jit
def through(flag): wait(flag)

@triton.jit(do_not_specialize=["seq"])
def exchange(flag, seq): through(flag)

@triton.jit
def scale(x): tl.store(x, 2)

def solution(x):
    while True: return x
"""
COPY = ("Memcpy DtoD (Device -> Device)", 2.0)


@pytest.fixture
def house_profile() -> ModuleType:
    return script("house_profile")


def _events(*steps: tuple[str, float]) -> list[dict[str, Any]]:
    return [{"name": name, "kind": "kernel", "duration_us": us} for name, us in steps]


def _line(*ranks: list[tuple[str, float]], placement: str = "shared") -> dict[str, Any]:
    """A report of problem 1, 2 MB of bfloat16 on each rank, with that in the ranks' timelines."""
    return {
        "problem": "allreduce",
        "source": SOURCE,
        "job": {
            "hardware": "h100x1",
            "world_size": 2,
            "size": "standard",
            "dtype": "bfloat16",
            "placement": placement,
        },
        "report": {
            "environment": {"hardware": "1 x NVIDIA H100 80GB HBM3"},
            "timing": None,
            "trials": [{"checks": [{"rank": rank, "output": "total"} for rank in (0, 1)]}],
            "timelines": [
                {
                    "rank": rank,
                    "dropped_events": 0,
                    "events": _events(*steps),
                    "idle_us": 5.0 * rank,
                    "span_us": 20.0,
                }
                for rank, steps in enumerate(ranks)
            ],
        },
    }


def test_each_step_counts_with_the_least_of_a_rank(house_profile: ModuleType) -> None:
    early, late = ("exchange", 6300.0), ("exchange", 8.0)
    first = [("scale", 4.0), early, COPY, ("scale", 2100.0), late, COPY]
    second = [("scale", 5.0), late, COPY, ("scale", 4.4), early, COPY]
    found = house_profile.row(_line(first, second))
    assert (found["local_us"], found["waiting_us"], found["busy_us"]) == (4.2, 8.0, 12.2)
    assert found["launches"] == 2.0
    assert found["slowest"][0] == {"name": "exchange", "us": 8.0, "launches": 1.0, "waits": True}
    # 2 MB are read and written, at 3.35 TB/s
    assert found["hbm_us"] == pytest.approx(4 * 1024**2 / 3.35e6, rel=0.02)
    assert found["share"] == pytest.approx(found["hbm_us"] / 12.2, rel=0.01)


def test_where_nobody_came_last_nothing_is_told(house_profile: ModuleType) -> None:
    calls = [("scale", 4.0), ("exchange", 6300.0), COPY] * 2
    found = house_profile.row(_line(calls, calls))
    assert (found["local_us"], found["waiting_us"], found["busy_us"]) == (4.0, None, None)
    assert found["share"] is None
    assert [step["name"] for step in found["slowest"]] == ["scale"]
    alone = house_profile.row(_line(calls, calls, placement="full"))
    assert (found["idle"], alone["idle"], alone["waiting_us"]) == (None, 0.125, 6300.0)


def test_a_step_that_every_rank_was_interrupted_in_is_not_told(house_profile: ModuleType) -> None:
    calls = [("scale", 4000.0), ("exchange", 8.0), COPY] * 2
    found = house_profile.row(_line(calls, calls))
    assert (found["local_us"], found["waiting_us"], found["busy_us"]) == (None, 8.0, None)


def test_calls_that_differ_have_no_share(house_profile: ModuleType) -> None:
    calls = [("scale", 300.0), COPY, ("scale", 900.0), COPY]
    found = house_profile.row(_line(calls, calls))
    assert (found["busy_us"], found["are_calls_alike"], found["share"]) == (600.0, False, None)


def test_a_timeline_with_events_left_out_tells_nothing(house_profile: ModuleType) -> None:
    line = _line([("scale", 4.0), COPY] * 2)
    line["report"]["timelines"][0]["dropped_events"] = 1
    found = house_profile.row(line)
    assert (found["busy_us"], found["launches"], found["dropped_events"]) == (None, None, 1)


def test_a_first_call_with_more_steps_is_cut_where_it_copies(house_profile: ModuleType) -> None:
    events = _events(("mask", 1.0), ("scale", 4.0), COPY, ("scale", 5.0), COPY)
    first, second = house_profile.halves(events, 1)
    assert [event["name"] for event in first] == ["mask", "scale"]
    assert [event["name"] for event in second] == ["scale"]


def test_kernels_that_wait_are_read_from_the_source(house_profile: ModuleType) -> None:
    assert house_profile.waiting_kernels(SOURCE) == {"wait", "through", "exchange"}


def test_the_file_holds_what_the_reports_say(house_profile: ModuleType, tmp_path: Path) -> None:
    """To mend it: `benchmarks/house_profile.py` with these files of reports."""
    found = house_profile.stored()
    assert found["reports"] == [path.name for path in REPORTS]
    again = sorted(house_profile.rows(REPORTS), key=lambda row: (row["hardware"], row["number"]))
    assert found["rows"] == [{name: one[name] for name in found["columns"]} for one in again]
    assert found["summary"] == json.loads(json.dumps(house_profile.summary(again)))


def test_the_page_has_the_figures_of_the_file(house_profile: ModuleType) -> None:
    page = (ROOT / "docs" / "house-kernels.md").read_text()
    table = page.partition("\n## On one GPU\n")[2].partition("\n## ")[0]
    found = re.findall(r"(?m)^\| (\d+) \w+ \| (\d) \| ([\d.]+) \| ([\d.]+) \| (\d+) \|", table)
    rows = {(row["number"], row["world_size"]): row for row in house_profile.stored()["rows"]}
    assert len(found) > 5
    for number, ranks, busy_us, bound_us, launches in found:
        row = rows[int(number), int(ranks)]
        bound = max(row["hbm_us"], row["flops_us"])
        least = f"{bound:.2g}" if bound < 100 else f"{bound:.0f}"
        told = (f"{row['busy_us']:.0f}", least, f"{row['launches']:.0f}")
        assert (busy_us, bound_us, launches) == told, number
