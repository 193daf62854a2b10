"""Collectives of ranks that share a GPU, on three ranks in host memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from problems.running.ranks import RankPool
from tests.problems import staged_tasks

RANKS = range(3)
OWN = [[10.0 * rank + at for at in range(6)] for rank in RANKS]
TOTAL = [30.0 + 3 * at for at in range(6)]


@pytest.fixture(scope="module")
def ranks() -> Iterator[RankPool]:
    with RankPool(len(RANKS)) as ranks:
        yield ranks


def _run(ranks: RankPool, name: str) -> list[Any]:
    return ranks.run(staged_tasks.run, name)


def test_every_dtype_is_added_up(ranks: RankPool) -> None:
    *exact, eight_bits = _run(ranks, "sums")[0]
    assert exact == [TOTAL] * len(exact)
    assert eight_bits == pytest.approx(TOTAL, rel=0.07)


def test_a_mean_is_one_and_flags_are_joined(ranks: RankPool) -> None:
    expected = ([10.0 + at for at in range(6)], [True, True, True])
    assert _run(ranks, "means_and_flags") == [expected] * 3


def test_a_sum_is_where_it_belongs(ranks: RankPool) -> None:
    parts = [TOTAL[:2], TOTAL[2:4], TOTAL[4:]]
    assert _run(ranks, "reduced_to_one") == [
        (OWN[0], parts[0]),
        (TOTAL, parts[1]),
        (OWN[2], parts[2]),
    ]
    assert _run(ranks, "scattered_sums") == [[3.0], [6.0, 6.0], [9.0, 9.0, 9.0]]


def test_parts_are_gathered_whatever_their_sizes_and_strides(ranks: RankPool) -> None:
    every = [value for own in OWN for value in own]
    uneven = [[0.0], [1.0, 1.0], [2.0, 2.0, 2.0]]
    assert _run(ranks, "gathered") == [(every, uneven)] * 3


def test_uneven_rows_are_exchanged(ranks: RankPool) -> None:
    for rank, (rows, one) in enumerate(_run(ranks, "exchanged")):
        assert rows == [float(peer) for peer in RANKS for _ in range(peer + rank)]
        assert one == [10 * peer + rank for peer in RANKS]


def test_one_tells_all(ranks: RankPool) -> None:
    parts = [OWN[1][:2], OWN[1][2:4], OWN[1][4:]]
    assert _run(ranks, "one_to_all") == [(OWN[2], parts[rank], [1]) for rank in RANKS]


def test_all_tell_one(ranks: RankPool) -> None:
    told = [{"rank": rank} for rank in RANKS]
    assert _run(ranks, "all_to_one") == [([], told), ([], told), (OWN, told)]


def test_messages_go_round_from_whomever_they_are(ranks: RankPool) -> None:
    for rank, (batched, alone, sender) in enumerate(_run(ranks, "ring")):
        before = (rank - 1) % 3
        assert (batched, alone, sender) == (OWN[before], OWN[before], before)


def test_a_handle_is_done_and_can_be_waited_for(ranks: RankPool) -> None:
    assert _run(ranks, "handles") == [(TOTAL, True, True)] * 3


def test_a_group_is_gloos_whatever_was_asked_for(ranks: RankPool) -> None:
    twice = [2 * value for value in OWN[2]]
    assert _run(ranks, "subgroups") == [twice, OWN[1], twice]


def test_sizes_that_do_not_fit_are_refused(ranks: RankPool) -> None:
    told = ["4 rows do not divide equally among 3 ranks", "the output must have 3 times"]
    for refused in _run(ranks, "refusals"):
        assert len(refused) == 2
        assert all(line.startswith(start) for line, start in zip(refused, told, strict=True))
