"""Bytes that a reference moves, as the kernel counts them."""

from __future__ import annotations

from dataclasses import replace

import pytest

import problems
from problems.audit.rank_rules import bytes_moved, reference_moves_its_cost
from problems.running.ranks import RankPool
from problems.spec import Cost

SCATTER = problems.find("scatter")
PART_BYTES = 64 * 32 * 4  # of size tiny in float32


def test_the_source_of_a_scatter_sends_what_the_others_receive(four_ranks: RankPool) -> None:
    (sent, received), *others = bytes_moved(four_ranks, SCATTER)
    assert 3 * PART_BYTES <= sent < 3.2 * PART_BYTES
    assert received < 0.2 * PART_BYTES
    assert all(PART_BYTES <= got < 1.2 * PART_BYTES for _, got in others)


def test_a_cost_beyond_what_the_reference_moves_is_found(
    four_ranks: RankPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = problems.load(SCATTER)
    assert module.cost(module.dims(64, 32, 4), 4, 4).wire_bytes == 3 * PART_BYTES
    assert reference_moves_its_cost(four_ranks, SCATTER) == []
    high = Cost(wire_bytes=4 * PART_BYTES, flops=0, hbm_bytes=0)
    monkeypatch.setattr(problems, "load", lambda _: replace(module, cost=lambda *_: high))
    (complaint,) = reference_moves_its_cost(four_ranks, SCATTER)
    assert complaint.endswith(f"the cost says {4 * PART_BYTES}")
