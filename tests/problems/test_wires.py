"""Wires that carry fewer bits than the values have."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from problems import find
from problems.audit.screen import Setting, outcomes_on_rank, screen
from problems.audit.wires import BLOCK, FP8, INT8, INT16, Code, sent
from problems.running.ranks import RankPool
from tests.problems.rank_tasks import (
    collectives_on_a_coarse_wire,
    integers_on_a_coarse_wire,
    lines_over_a_wire,
)


@pytest.mark.parametrize(("code", "steps"), [(INT8, 127), (INT16, 32767)])
def test_integers_are_off_by_half_a_step_of_their_block(code: Code, steps: int) -> None:
    values = torch.randn(5, 100)
    error = (sent(values.double(), code) - values.double()).abs().view(-1)
    largest = torch.nn.functional.pad(values.abs().view(-1), (0, 500 % BLOCK and 12))
    limit = largest.view(-1, BLOCK).amax(dim=1).repeat_interleave(BLOCK)[:500] / (2 * steps)
    assert bool((error <= 1.001 * limit).all())
    assert error.max() > 0.8 * limit.min()


def test_one_large_value_spoils_its_whole_block() -> None:
    values = torch.full((256,), 1.0)
    values[0] = 400.0
    for block, spoilt in ((32, 31), (128, 127), (None, 255)):
        arriving = sent(values, replace(INT8, block=block))
        assert int((arriving == 0).sum()) == spoilt


def test_fp8_keeps_three_bits_of_a_mantissa() -> None:
    values = 1 + torch.rand(1000, dtype=torch.float64)
    error = (sent(values, FP8) - values).abs() / values
    assert 2**-6 < error.max() <= 2**-4


def test_no_block_changes_zeros_infinities_integers_bytes_or_the_layout() -> None:
    for values in (torch.zeros(64), torch.arange(64), torch.randn(64).to(torch.float8_e4m3fn)):
        assert torch.equal(sent(values, INT8).float(), values.float())
    odd = torch.randn(8, 8)
    odd[2, 3] = float("-inf")
    assert sent(odd.T, INT8).shape == (8, 8)
    assert sent(odd, INT8)[2, 3] == float("-inf")
    assert bool(sent(odd, INT8).isfinite().sum() == 63)
    narrow = torch.randn(64).bfloat16()
    assert torch.equal(sent(narrow, INT16), narrow)
    assert not torch.equal(sent(narrow, INT8), narrow)
    waves = torch.randn(64, dtype=torch.complex64)
    assert 0 < (sent(waves, INT8) - waves).abs().max() < 0.1


def test_a_coarse_wire_is_near_and_only_what_was_sent_is_coarse(two_ranks: RankPool) -> None:
    by_rank = two_ranks.run(collectives_on_a_coarse_wire)
    assert set(by_rank[0]) - set(by_rank[1]) == {"gather", "reduce"}
    for rank, found in enumerate(by_rank):
        for name, (got, plain) in found.items():
            assert (got - plain).abs().max() < 0.05, name
            is_source = (name, rank) in {("broadcast", 1), ("scatter", 0)}
            assert torch.equal(got, plain) is is_source, name
        for name in ("all_gather", "all_to_all"):
            got, plain = found[name]
            assert torch.equal(got[rank], plain[rank]), name


def test_integers_and_what_fits_in_a_block_are_sent_as_they_are(two_ranks: RankPool) -> None:
    for counts, is_lossy in two_ranks.run(integers_on_a_coarse_wire):
        assert torch.equal(counts, 3 * torch.arange(100, 200))
        assert not is_lossy


@pytest.mark.parametrize("slug", ["allreduce", "moe_ep_narrow", "fsdp_and_tp"])
def test_the_screen_rejects_narrow_wires(two_ranks: RankPool, slug: str) -> None:
    findings = {f.answer: f for f in screen(two_ranks, find(slug), "hardened")}
    assert all(f.as_it_should_be for f in findings.values()), findings
    assert set(findings["int8-wire"].errors) == {"float32", "bfloat16", "float16"}
    assert set(findings["int16-wire"].errors) == {"float32"}
    assert findings["int8-wire"].rms_errors["bfloat16"] < findings["fp8-wire"].errors["float32"]


@pytest.mark.parametrize("is_first", [True, False])
def test_one_line_alone_can_be_coarse(two_ranks: RankPool, is_first: bool) -> None:
    assert two_ranks.run(lines_over_a_wire, is_first) == [(is_first, not is_first)] * 2


def test_the_screen_tries_each_collective_alone(two_ranks: RankPool) -> None:
    setting = Setting(
        name=find("zero2_optimizer_shard_grad"),
        profile="hardened",
        size="tiny",
        dtype="bfloat16",
        secret=b"alone",
        device="cpu",
    )
    for found in two_ranks.run(outcomes_on_rank, setting, "int8-wire"):
        alone = [variant for variant in found if "alone, blocks of 128" in variant]
        assert len(alone) == 3  # the weights, the gradients, the new weights
        assert {"", "of all lines, a scale for each tensor"} < set(found)
    in_float32 = two_ranks.run(outcomes_on_rank, replace(setting, dtype="float32"), "int8-wire")
    assert [set(found) for found in in_float32] == [{""}] * 2
