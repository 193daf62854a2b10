"""Sealed inputs hide what they hold; a commitment fits one set of outputs only."""

from __future__ import annotations

import pytest
import torch

from evaluator.buffers import sealing
from evaluator.buffers.sealing import commitment, key_stream, seal, signed, unseal
from evaluator.judge.gated_call import draw_keys

KEY, OTHER_KEY = 0xFEDC_BA98_7654_3210, 0x0123_4567_89AB_CDEF
OFFSET, SLAB_BYTES = 512, 8192
LENGTHS = (1, 7, 8, 13, 256, 1003)
MASK = (1 << 64) - 1
CPU = torch.device("cpu")


def slab_of(seed: int = 0) -> torch.Tensor:
    """Return a slab full of random bytes."""
    return torch.randint(0, 256, (SLAB_BYTES,), dtype=torch.uint8, generator=_seeded(seed))


def sealed(plain: torch.Tensor, key: int = KEY, offset: int = OFFSET) -> torch.Tensor:
    """Return the bytes that lie in a slab in place of plain ones."""
    slab = torch.zeros(SLAB_BYTES, dtype=torch.uint8)
    own = slab[offset : offset + len(plain)]
    seal(own, plain, offset, key)
    return own


def _seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("length", LENGTHS)
def test_what_is_sealed_is_there_again_once_it_is_opened_and_nothing_else_has_changed(
    length: int,
) -> None:
    before = slab_of()
    slab, plain = before.clone(), slab_of(1)[:length]
    seal(slab[OFFSET : OFFSET + length], plain, OFFSET, KEY)
    unseal(slab, [(OFFSET, length)], KEY)
    before[OFFSET : OFFSET + length] = plain
    assert torch.equal(slab, before)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("fill", [0, 255, None], ids=["zeros", "ones", "random"])
def test_no_byte_of_a_sealed_input_tells_what_it_was(length: int, fill: int | None) -> None:
    plain = slab_of(1)[:length] if fill is None else torch.full((length,), fill, dtype=torch.uint8)
    unchanged = torch.stack([sealed(plain, key) == plain for key in range(1, 60)])
    assert not unchanged.all(dim=0).any()
    assert unchanged.float().mean() < 0.06  # by chance one in 256


def test_no_word_of_a_large_sealed_input_is_left() -> None:
    plain = slab_of(1)[:4096]
    found = sealed(plain)
    assert not (found.view(torch.int64) == plain.view(torch.int64)).any()
    assert not set(found.view(torch.int64).tolist()) & set(plain.view(torch.int64).tolist())


def test_another_key_opens_nothing() -> None:
    plain = slab_of(1)[:256]
    slab = torch.zeros(SLAB_BYTES, dtype=torch.uint8)
    seal(slab[OFFSET : OFFSET + 256], plain, OFFSET, KEY)
    unseal(slab, [(OFFSET, 256)], OTHER_KEY)
    opened = slab[OFFSET : OFFSET + 256]
    assert not (opened.view(torch.int64) == plain.view(torch.int64)).any()


def test_equal_inputs_of_a_series_are_sealed_differently() -> None:
    plain = slab_of(1)[:256]
    first, second = sealed(plain), sealed(plain, offset=2048)
    assert not (first.view(torch.int64) == second.view(torch.int64)).any()


def test_a_word_that_is_known_does_not_tell_the_key() -> None:
    """One round of the mixing can be undone: with one round alone it would."""
    word = int(key_stream(KEY, 0, 1, CPU)) & MASK
    for guess in (word, word - KEY):
        assert (_unmixed(guess & MASK) - sealing._GOLDEN) & MASK != KEY


def _unmixed(x: int) -> int:
    """Undo one round of SplitMix64's finalizer."""
    x ^= (x >> 31) ^ (x >> 62)
    x = x * pow(sealing._SECOND, -1, 1 << 64) & MASK
    x ^= (x >> 27) ^ (x >> 54)
    x = x * pow(sealing._FIRST, -1, 1 << 64) & MASK
    return x ^ (x >> 30) ^ (x >> 60)


def test_that_one_round_is_undone_here() -> None:
    mixed = int(sealing._mixed(torch.tensor(signed(KEY)))) & MASK
    assert _unmixed(mixed) == KEY


@pytest.mark.parametrize("length", LENGTHS)
def test_a_commitment_fits_no_outputs_with_another_byte(length: int) -> None:
    ranges = [(0, length), (OFFSET + 1536, length)]
    slab = slab_of()
    own = commitment(slab, ranges, KEY)
    assert own == commitment(slab.clone(), ranges, KEY)
    for offset, nbytes in ranges:
        for at in {0, nbytes // 2, nbytes - 1}:
            changed = slab.clone()
            changed[offset + at] ^= 1
            assert commitment(changed, ranges, KEY) != own


def test_a_commitment_fits_neither_another_key_nor_another_order() -> None:
    slab = slab_of()
    own = commitment(slab, [(0, 64)], KEY)
    assert commitment(slab, [(0, 64)], OTHER_KEY) != own
    ranges = [(0, 64), (64, 64)]
    assert commitment(slab, ranges, KEY) != commitment(slab, ranges[::-1], KEY)
    changed = slab.clone()
    changed[:8], changed[8:16] = slab[8:16], slab[:8]
    assert commitment(changed, [(0, 64)], KEY) != own


def test_long_inputs_are_sealed_in_parts_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = slab_of(1)[:1003]
    whole = sealed(plain).clone()
    monkeypatch.setattr(sealing, "CHUNK_BYTES", 64)
    assert torch.equal(sealed(plain), whole)


def test_every_rank_and_launch_has_a_key_of_its_own_and_a_series_has_one() -> None:
    single = draw_keys(2, [(3,), (1,), (2,)])
    assert [sorted(own) for own in single] == [[1, 2, 3]] * 2
    assert len({key for own in single for key in own.values()}) == 6
    series = draw_keys(2, [(3, 1, 2)])
    assert [len(set(own.values())) for own in series] == [1, 1]
    assert series[0] != series[1]
    assert draw_keys(2, [(3, 1, 2)]) != series
