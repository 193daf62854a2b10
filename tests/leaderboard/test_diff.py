"""A diff tells the truth about both texts, reads well, and takes little time whatever it gets."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.kit.diff import (
    GAP,
    MOST_CHARS,
    MOST_LINES,
    MOST_ROWS,
    DiffLine,
    compared,
    matched,
)

LINES = st.lists(st.sampled_from("abcdefg"), max_size=60)


@given(LINES, LINES)
def test_matched_lines_are_equal_and_rise_in_both_texts(old: list[str], new: list[str]) -> None:
    pairs = matched(old, new)
    assert all(old[i] == new[j] for i, j in pairs)
    for (i, j), (later_i, later_j) in itertools.pairwise(pairs):
        assert i < later_i
        assert j < later_j


@given(LINES, LINES)
def test_rows_hold_every_line_that_changed(old: list[str], new: list[str]) -> None:
    diff = compared("\n".join(old), "\n".join(new))
    before = "\n".join(old).split("\n") if old else []
    after = "\n".join(new).split("\n") if new else []
    assert diff.removed + diff.same == len(before)
    assert diff.added + diff.same == len(after)
    for row in diff.rows:
        if row.old is not None:
            assert before[row.old - 1] == row.text
        if row.new is not None:
            assert after[row.new - 1] == row.text
    assert sum(row.sign == "-" for row in diff.rows) == diff.removed
    assert sum(row.sign == "+" for row in diff.rows) == diff.added


@given(LINES)
def test_a_text_does_not_differ_from_itself(lines: list[str]) -> None:
    assert compared("\n".join(lines), "\n".join(lines)).is_same


def test_a_changed_line_stands_in_its_surroundings_and_the_rest_is_folded() -> None:
    old = [f"line {i}" for i in range(40)]
    new = [*old[:20], "changed", *old[21:]]
    diff = compared("\n".join(old) + "\n", "\n".join(new) + "\n")
    assert [row.sign for row in diff.rows] == [GAP, *"   ", "-", "+", *"   ", GAP]
    assert diff.rows[0] == DiffLine(sign=GAP, old=None, new=None, text="17 unchanged lines")
    assert diff.rows[4] == DiffLine(sign="-", old=21, new=None, text="line 20")
    assert diff.rows[5] == DiffLine(sign="+", old=None, new=21, text="changed")


def test_a_function_that_moved_in_stays_whole() -> None:
    old = "def a():\n    return 1\n\n\ndef c():\n    return 3\n"
    new = "def a():\n    return 1\n\n\ndef b():\n    return 2\n\n\ndef c():\n    return 3\n"
    diff = compared(old, new)
    assert (diff.added, diff.removed, diff.same) == (4, 0, 6)


def test_what_is_shown_is_bounded() -> None:
    diff = compared("", "\n".join(f"{i}" + "x" * 1000 for i in range(MOST_ROWS + 7)))
    assert len(diff.rows) == MOST_ROWS
    assert diff.left_out == 7
    assert all(len(row.text) < MOST_CHARS + 40 for row in diff.rows)
    assert diff.rows[0].text.endswith("601 more characters")


def test_a_text_of_too_many_lines_is_not_called_the_same() -> None:
    diff = compared("x\n" * (MOST_LINES + 3), "x\n" * MOST_LINES + "y\n")
    assert (diff.added, diff.removed, diff.left_out) == (0, 0, 4)
    assert not diff.is_same


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x\n" * 120_000, "x\n" * 10_000 + "y\n" + "x\n"),
        ("\n".join(map(str, range(20_000))), "\n".join(map(str, range(20_000, 0, -1)))),
        (("a\n" + "x\ny\n" * 20) * 2_000, ("b\n" + "y\ny\nx\n" * 13) * 2_000),
        (
            "".join(f"u{i}\nu{i + 1}\n" for i in range(15_000)),
            "".join(f"u{i}\nv{i}\nu{i + 1}\n" for i in range(15_000)),
        ),
    ],
    ids=["one line", "reversed", "small stretches", "peeled"],
)
def test_no_text_takes_long(old: str, new: str) -> None:
    started = time.process_time()
    compared(old, new)
    assert time.process_time() - started < 10
