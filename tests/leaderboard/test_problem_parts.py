"""What is packed of each submission comes back, and is exchanged in place."""

from __future__ import annotations

import math
import random
from uuid import UUID

import pytest

from leaderboard.metrics.failures import FAILURE_MODES
from leaderboard.read_model.problem_parts import Best, Parts

MODES = (1, *(0,) * (len(FAILURE_MODES) - 2), 2)
FAST = Best(7, False, 3, 2, 1.5, 1.4, 0.3, UUID(int=5), MODES, 100.25)
FAILED = Best(9, False, 1, 0, None, None, None, None, (1, *(0,) * (len(FAILURE_MODES) - 1)), None)
REFERENCE = Best(8, True, 1, 1, 1.0, 0.9, None, str(UUID(int=6)), MODES, 99.0)


def _told(parts: Parts) -> list[tuple[object, ...]]:
    """By submission; NaN as None."""
    columns = [column.tolist() for column in parts]
    runs = map(parts.run, range(len(parts.submission)))
    rows = zip(*(columns[at] for at in (0, 1, 2, 3, 4, 5, 6, 9)), strict=True)
    known = [[None if math.isnan(value) else value for value in row] for row in rows]
    return [(*row, run) for row, run in zip(known, runs, strict=True)]


def test_what_was_packed_is_unpacked_by_submission() -> None:
    parts = Parts.unpack(Parts.of([FAILED, FAST, REFERENCE]).pack())
    assert _told(parts) == [
        (7, 0, 3, 2, 1.5, 1.4, 0.3, 100.25, UUID(int=5)),
        (8, 1, 1, 1, 1.0, 0.9, None, 99.0, UUID(int=6)),
        (9, 0, 1, 0, None, None, None, None, None),
    ]
    assert parts.modes_added() == [3, *MODES[1:-1], 4]
    assert Parts.of([]).pack() == b""


@pytest.mark.parametrize("seed", range(5))
def test_the_order_in_which_parts_come_makes_no_difference(seed: int) -> None:
    rows = [FAST._replace(submission_id=number, made=3 + number) for number in range(20)]
    shuffled = random.Random(seed).sample(rows, 20)
    parts = Parts.of(one._replace(made=99) for one in shuffled[:7])
    for one in shuffled:
        parts.put(one.submission_id, one)
    assert parts == Parts.of(rows)
    for one in shuffled[3:]:
        parts.put(one.submission_id, None)
    assert parts == Parts.of(shuffled[:3])


def test_baselines_are_left_out_of_a_copy() -> None:
    parts = Parts.of([FAST, REFERENCE, FAILED])
    assert parts.of_models().pack() == Parts.of([FAST, FAILED]).pack()
    assert parts.pack() == Parts.of([FAST, REFERENCE, FAILED]).pack()


def test_another_number_of_failure_modes_is_an_error() -> None:
    with pytest.raises(ValueError, match="rebuild_summary"):
        Parts.unpack(Parts.of([FAST, FAILED]).pack()[:-4])
