"""Results that a submission has to wait for, on three ranks: by gloo, and as ranks on one GPU."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from evaluator.rank import late_results
from problems.running.ranks import RankPool
from tests.evaluator import late_tasks
from tests.evaluator.late_tasks import RANKS

OWN = [late_tasks.own(rank).tolist() for rank in range(RANKS)]
TOTAL = [sum(values) for values in zip(*OWN, strict=True)]
EVERY = [value for own in OWN for value in own]


@pytest.fixture(scope="module", params=["gloo", "staged"])
def ranks(request: pytest.FixtureRequest) -> Iterator[RankPool]:
    with RankPool(RANKS, is_shared=request.param == "staged") as ranks:
        yield ranks


def _run(ranks: RankPool, name: str) -> list[Any]:
    return ranks.run(late_tasks.run, name)


def _flat(values: Any) -> list[float]:
    if not isinstance(values, list):
        return [values]
    return [value for item in values for value in _flat(item)]


def _is_poison(values: Any) -> bool:
    return all(math.isnan(value) for value in _flat(values))


def test_sums_are_late(ranks: RankPool) -> None:
    for rank, (before, after) in enumerate(_run(ranks, "sums")):
        part = TOTAL[2 * rank : 2 * rank + 2]
        assert after == [TOTAL, TOTAL if rank == 1 else OWN[rank], part, part]
        assert before[1] == OWN[rank] if rank != 1 else _is_poison(before[1])
        assert _is_poison([before[0], *before[2:]])


def test_copies_are_late_and_a_source_is_left_alone(ranks: RankPool) -> None:
    for rank, (before, after) in enumerate(_run(ranks, "copies")):
        gathered = OWN if rank == 2 else []
        assert after == [OWN[1], OWN[0][2 * rank : 2 * rank + 2], EVERY, *OWN, *gathered]
        assert before[0] == OWN[1] if rank == 1 else _is_poison(before[0])
        assert _is_poison(before[1:])


def test_exchanges_are_late(ranks: RankPool) -> None:
    for rank, (before, after) in enumerate(_run(ranks, "exchanges")):
        rows = [float(peer) for peer in range(RANKS) for _ in range(rank + peer)]
        assert after == [rows, *(own[2 * rank : 2 * rank + 2] for own in OWN)]
        assert _is_poison(before)


def test_messages_are_late(ranks: RankPool) -> None:
    for rank, ((before, after), sender, received) in enumerate(_run(ranks, "messages")):
        expected = (rank - 1) % RANKS
        assert _is_poison(before)
        assert after == [OWN[expected]] * 2
        assert (sender, received) == (expected, OWN[expected])


def test_what_is_coalesced_is_late(ranks: RankPool) -> None:
    for (before, after), third in _run(ranks, "coalesced"):
        assert _is_poison(before)
        assert after == [TOTAL, EVERY]
        assert third == TOTAL


def test_in_place_only_what_is_written_is_late(ranks: RankPool) -> None:
    for rank, (before, after) in enumerate(_run(ranks, "in_place")):
        own = slice(2 * rank, 2 * rank + 2)
        assert after[:2] == [OWN, OWN]
        assert after[2] == [*OWN[rank][: own.start], *TOTAL[own], *OWN[rank][own.stop :]]
        for rows in before[:2]:
            assert rows[rank] == OWN[rank]
            assert _is_poison([row for peer, row in enumerate(rows) if peer != rank])
        assert [math.isnan(value) for value in before[2]] == [at // 2 == rank for at in range(6)]


def test_every_kind_is_late(ranks: RankPool) -> None:
    assert _run(ranks, "kinds") == [[(False, True)] * len(late_tasks.KINDS)] * RANKS


def test_a_handle_can_be_waited_for_in_every_way(ranks: RankPool) -> None:
    told = [(TOTAL, True), (TOTAL, None), (TOTAL, TOTAL), (TOTAL, TOTAL), (TOTAL, True)]
    assert _run(ranks, "handles") == [told] * RANKS


def test_ranks_may_wait_in_different_orders(ranks: RankPool) -> None:
    for seen, written_later in _run(ranks, "orders"):
        assert seen[:3] == [TOTAL] * 3
        assert _is_poison(seen[3])
        assert written_later == [0.0] * 6


def test_a_wait_is_for_what_came_before_in_its_group_alone(ranks: RankPool) -> None:
    for first, second, message in _run(ranks, "the_last_wait"):
        assert first == second == TOTAL
        assert _is_poison(message)


def test_a_call_that_blocks_completes_what_came_before_in_its_group(ranks: RankPool) -> None:
    assert _run(ranks, "blocking_calls") == [[TOTAL] * 3] * RANKS


def test_an_input_is_read_at_the_call(ranks: RankPool) -> None:
    assert _run(ranks, "overwritten_inputs") == [EVERY] * RANKS


def test_a_rank_that_is_not_in_the_group_takes_no_part(ranks: RankPool) -> None:
    total = [a + b for a, b in zip(OWN[0], OWN[1], strict=True)]
    assert _run(ranks, "not_in_the_group") == [total, total, OWN[2]]


def test_gradients_go_back_through_what_was_reduced(ranks: RankPool) -> None:
    assert [values[0] for values in _run(ranks, "gradients")] == pytest.approx([1.0, 2.0, 3.0])


@pytest.mark.slow
def test_a_function_can_be_compiled(ranks: RankPool) -> None:
    assert _run(ranks, "compiled") == [[6 * value + 1 for value in TOTAL]] * RANKS


def test_strides_are_kept_where_ranks_share_a_gpu() -> None:
    with RankPool(RANKS, is_shared=True) as ranks:
        for before, after in _run(ranks, "strides"):
            assert before == [True, False, True, False]
            assert after == [[rank, 0.0, rank, 0.0] for rank in (1, 1, 2, 2, 3, 3)]


@pytest.mark.parametrize(
    "kind", [torch.float8_e4m3fn, torch.float8_e5m2, torch.uint16, torch.uint64, torch.bool]
)
def test_rare_kinds_have_a_poison(kind: torch.dtype) -> None:
    value = torch.zeros(3, 2).to(kind)
    poison = torch.empty_like(value).copy_(late_results._poison(value)).to(torch.float64)
    assert (poison.isnan() | (poison != 0)).all()


def test_a_gpu_that_has_done_everything_has_results(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[object] = []
    work: Any = type("Work", (), {"wait": lambda self: waited.append("wait")})()
    output, result = torch.zeros(2), torch.ones(2)
    monkeypatch.setattr(late_results, "_begun", [])
    late_results.Late(work, [output], [result], None)
    late_results._completing_all(waited.append)("cuda:0")
    assert (waited, output.tolist()) == (["cuda:0", "wait"], [1.0, 1.0])
    assert not late_results._begun
