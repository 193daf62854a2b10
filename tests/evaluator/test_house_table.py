"""The tables of docs/house-kernels.md, and where a kernel and NCCL are equally fast."""

from __future__ import annotations

from types import ModuleType

import pytest

from evaluator.sandbox.sandbox import REPOSITORY
from tests.benchmark_scripts import script
from tests.evaluator.house_files import FIXTURES, TIMED

PAGE = (REPOSITORY / "docs" / "house-kernels.md").read_text()
SIZES = sorted({*(FIXTURES / "reports").glob("*-house-kernels*.jsonl.gz")} - {TIMED})
LARGE = [path for path in SIZES if "large" in path.name]


@pytest.fixture
def house_table() -> ModuleType:
    return script("house_table")


def test_the_page_has_the_tables_of_the_reports(house_table: ModuleType) -> None:
    assert "\n".join(house_table.time_rows([TIMED])) in PAGE
    assert "\n".join(house_table.size_rows(SIZES)) in PAGE
    for path in LARGE:
        _, _, *rows = house_table.rows([path])
        assert "\n".join(rows) in PAGE, path.name


def test_a_crossing_lies_between_sizes(house_table: ModuleType) -> None:
    """All-reduce is of 2^20 elements at `standard` and of 2^26 at `large`."""
    found = house_table.crossing("allreduce", {"tiny": 4.0, "standard": 2.0, "large": 0.25})
    assert found == pytest.approx(2**22)
    assert house_table.crossing("allreduce", {"standard": 2.0, "large": 1.5}) is None
    assert house_table.crossing("allreduce", {"large": 0.5}) is None
