"""Numbers become text and cells; nothing that could carry markup gets through."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
from django.utils.safestring import mark_safe

from leaderboard.delivery import cells
from leaderboard.metrics.intervals import Interval

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        *((text, "number or None") for text in ("1", "<script>", b"1", mark_safe("1"))),
        (True, "number or None"),
        ([1.0], "unhashable"),
    ],
)
def test_a_cell_refuses_everything_but_numbers(value: Any, why: str) -> None:
    for cell in (cells.share_cell, cells.ratio_cell, cells.count_cell, cells.heat_cell):
        with pytest.raises(TypeError, match=why):
            cell(value)


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf])
def test_what_is_not_known_is_a_dash(value: float | None) -> None:
    for cell in (cells.share_cell, cells.ratio_cell, cells.count_cell, cells.heat_cell):
        assert cell(value) == '<td class="num none">–</td>'
    assert cells.microseconds_text(value) == "–"


def test_a_share_shows_per_cent_its_bar_and_its_interval() -> None:
    cell = cells.share_cell(0.322, Interval(low=0.233, high=0.426))
    assert ">32.2<" in cell
    assert '<rect width="32.2%"/>' in cell
    assert '<rect class="ci" x="23.3%" width="19.3%"/>' in cell
    assert "95 % interval 23.3 to 42.6 %" in cell


@pytest.mark.parametrize(
    ("number", "text"),
    [(1.304, "1.30×"), (12.34, "12.3×"), (0.0412, "0.0412×"), (1234.0, "1,234×"), (0.0, "0×")],
)
def test_ratios_have_three_digits(number: float, text: str) -> None:
    assert cells.ratio_text(number) == text


@pytest.mark.parametrize(
    ("microseconds", "text"), [(74.42, "74.4 µs"), (5300.0, "5.30 ms"), (2.5e6, "2.50 s")]
)
def test_times_carry_their_unit(microseconds: float, text: str) -> None:
    assert cells.microseconds_text(microseconds) == text


def test_sizes_carry_their_unit() -> None:
    assert cells.bytes_text(2 * 1024 * 1024) == "2.00 MiB"
    assert cells.bytes_text(12) == "12 B"
    assert cells.count_text(2.147e9) == "2.15 G"
    assert cells.count_text(12) == "12"


def test_a_failed_margin_says_so_in_words() -> None:
    assert "fail</span>" in cells.margin_cell(3.2, False)
    assert "fail" not in cells.margin_cell(0.4, True)


def test_only_our_own_cells_are_joined() -> None:
    row = cells.joined([cells.count_cell(3), cells.fraction_cell(12, 87)])
    assert row == '<td class="num">3</td><td class="num">12<span class="of">/87</span></td>'
    assert '37<span class="of">/1,048,576' in cells.fraction_cell(37, 1 << 20)
    with pytest.raises(TypeError, match="only cells"):
        cells.joined(["<td>1</td>"])  # type: ignore[list-item]


def test_a_share_is_pale_where_it_is_not_sure() -> None:
    interval = Interval(low=0.4, high=0.6)
    cell = cells.fast_cell(0.3, interval, 0.5, 2)
    assert '<rect class="pale" width="50.0%"/><rect width="30.0%"/>' in cell
    assert "95 % interval 40.0 to 60.0 %; 50.0 % with 2 not distinguishable" in cell
    assert "pale" not in cells.fast_cell(0.5, interval, 0.5, 0)
    assert "none" in cells.fast_cell(None, None, None, 0)


def test_a_change_has_a_decimal_only_where_it_needs_one() -> None:
    assert "3<span" in cells.change_cell(3.0, 4.5)
    assert cells.change_cell(3.0, 4.5).endswith("4.5</td>")
    assert cells.change_cell(3.0, None).endswith("–</td>")
    assert "none" in cells.change_cell(None, 1)


def test_every_thing_counted_has_a_mark_of_its_kind() -> None:
    made = cells.unit_marks(13, 0, 8)
    assert made.count('class="u0"') == 13
    assert made.count('class="u2"') == 8
    assert 'height="22"' in made


def test_text_becomes_markup_in_few_places() -> None:
    """Whoever adds one here has to look at what it escapes."""
    makers = {
        path.name
        for path in (ROOT / "leaderboard").rglob("*.py")
        if re.search(r"\b(SafeString|SafeText|mark_safe|Markup)\(", path.read_text())
    }
    known = {"cells.py", "highlighting.py", "jinja.py"}
    assert makers == known | {"house_text.py"}
    templates = [path.read_text() for path in (ROOT / "templates").rglob("*.*")]
    assert templates
    assert not any(re.search(r"\|\s*safe\b|autoescape", text) for text in templates)


def test_a_mean_names_the_problem_that_dominates_it() -> None:
    found = str(cells.mean_cell(1.78, Interval(1.2, 2.1), (73, 0.01, 2.4)))
    assert "Without problem 73 (0.0100×) it is 2.40×." in found
    assert "1.78×" in found
    assert "1.20 – 2.10" in found
    plain = cells.interval_cell(1.78, 1.2, 2.1)
    assert cells.mean_cell(1.78, Interval(1.2, 2.1), None) == plain
    assert "title" not in plain
