"""Stores the answers of a batch, and opens each call's inputs with the answer of the one before."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from ctypes import c_uint
from typing import Any

import torch

from evaluator.buffers import cuda_kernel
from evaluator.buffers.memory import Memory
from evaluator.buffers.scrambling import (
    BLOCK,
    CALL_WORDS,
    DTYPES,
    LOCK_WORD,
    MOST_OUTPUTS,
    Span,
    key_of,
    key_stream,
)
from evaluator.rank.calls import Finish, Slot

MOST_BLOCKS = 1024
VECTOR_BYTES = 16  # that a thread copies at once
ALL_BITS = (1 << 64) - 1

Lock = dict[str, Any] | None  # what the judge tells of it


def chain(slab: Memory, slots: Sequence[Slot], plan: dict[str, Any]) -> None:
    """Have the calls of the next batch follow each other as the judge's plan says, and those that
    warm up do as much without opening anything."""
    locks: list[Lock] = [*plan["locks"][1:], None]  # each call opens the one after it
    a_lock = next(filter(None, locks), None)
    chained = [(slots[at], lock) for at, lock in zip(plan["calls"], locks, strict=True)]
    for at in plan["warm_up"]:
        slots[at].is_spare = True
        chained.append((slots[at], a_lock))
    finishes: Sequence[Finish]
    if slab.device.type == "cuda":
        finishes = _fused(slab, chained, plan["kernel"])
    else:
        finishes = [Finish(input_opener(slab, lock) if lock else None) for _, lock in chained]
    for (slot, _), finish in zip(chained, finishes, strict=True):
        slot.finish = finish


def input_opener(slab: Memory, lock: dict[str, Any]) -> Callable[[bool], None]:
    """Return what undoes a lock on a processor, or with False does as much and changes nothing."""
    place = lock["answer"]
    answer = slab.tensor(place["offset"], tuple(place["shape"]), getattr(torch, place["dtype"]))
    flat, elements = answer.reshape(-1), _numbers(lock["elements"], torch.int64)
    thresholds, words = _numbers(lock["thresholds"], torch.float64), _words(slab, lock)
    nothing = torch.zeros(len(words), dtype=torch.int64)

    def open_lock(really: bool) -> None:
        above = flat[elements].double() > thresholds
        stream = key_stream(key_of(above), len(words))
        words.bitwise_xor_(stream if really else nothing)

    return open_lock


class FusedFinish(Finish):
    """Does on a GPU by one launch what follows a call: launches take a processor's time, which is a
    part of what is timed. `call` is where the kernel finds what it has to do."""

    def __init__(self, launch: cuda_kernel.Launch, call: int, slot: Slot, lock: Lock) -> None:
        super().__init__()
        self._launch, self._call = launch, call
        self._own = [output.data_ptr() for output in slot.outputs]
        self._kinds = [(output.shape, output.dtype, output.get_device()) for output in slot.outputs]
        self._openers = -(-lock["span"][1] // BLOCK) if lock else 0
        blocks = -(-sum(output.nbytes for output in slot.outputs) // (VECTOR_BYTES * BLOCK))
        self._opening = c_uint(self._openers)
        self._both = c_uint(self._openers + max(1, min(MOST_BLOCKS, blocks)))

    def after_call(self, slot: Slot, result: object, given: list[object]) -> None:
        self._finish(slot, result, given, ALL_BITS)

    def after_warm_up(self, slot: Slot, result: object, given: list[object]) -> None:
        self._finish(slot, result, given, 0)

    def after_nothing(self, slot: Slot) -> None:
        self._go(self._both, self._own[:MOST_OUTPUTS], 0)

    def _finish(self, slot: Slot, result: object, given: list[object], mask: int) -> None:
        sources = self._sources(result)
        if sources is not None:
            slot.store_changed(given)
            self._go(self._both, sources, mask)
            return
        slot.store(result, given)
        if self._openers:
            self._go(self._opening, self._own[:MOST_OUTPUTS], mask)

    def _sources(self, result: object) -> list[int] | None:
        """Return where the outputs lie; None where torch has to copy, or to complain."""
        returned = result if isinstance(result, (tuple, list)) else (result,)
        if len(returned) != len(self._kinds) or len(returned) > MOST_OUTPUTS:
            return None
        sources = []
        for tensor, (shape, dtype, device) in zip(returned, self._kinds, strict=True):
            if type(tensor) is not torch.Tensor or tensor.dtype is not dtype:
                return None
            if tensor.shape != shape or tensor.get_device() != device or dtype.is_complex:
                return None
            source = tensor.data_ptr()
            if source % VECTOR_BYTES or not tensor.is_contiguous() or tensor.is_neg():
                return None
            sources.append(source)
        return sources

    def _go(self, grid: c_uint, sources: Sequence[int], mask: int) -> None:
        words = self._launch.words
        words[MOST_OUTPUTS], words[MOST_OUTPUTS + 1] = self._call, self._openers
        words[MOST_OUTPUTS + 2] = mask
        for position, source in enumerate(sources):
            words[position] = source
        self._launch(grid)


def _fused(slab: Memory, chained: Sequence[tuple[Slot, Lock]], ptx: str) -> list[FusedFinish]:
    """Return what follows each of these calls on a GPU."""
    kernel, device = cuda_kernel.load(ptx, "finish_call"), slab.device
    launch = cuda_kernel.Launch(kernel, words=MOST_OUTPUTS + 3, block=BLOCK, device=device.index)
    table = torch.stack([_described(slab, slot, lock) for slot, lock in chained]).to(device)
    launch.kept = table
    return [
        FusedFinish(launch, table[row].data_ptr(), slot, lock)
        for row, (slot, lock) in enumerate(chained)
    ]


def _described(slab: Memory, slot: Slot, lock: Lock) -> torch.Tensor:
    """Return what the kernel `finish_call` reads of a call: int64, [CALL_WORDS]."""
    row, outputs = torch.zeros(CALL_WORDS, dtype=torch.int64), slot.outputs[:MOST_OUTPUTS]
    row[: len(outputs)] = torch.tensor([output.data_ptr() for output in outputs])
    sizes = [output.nbytes for output in outputs]
    row[MOST_OUTPUTS : MOST_OUTPUTS + len(outputs)] = torch.tensor(sizes)
    if lock is not None:
        place, (offset, count, step) = lock["answer"], lock["span"]
        answer = slab.address + place["offset"]
        own = [output.data_ptr() for output in outputs]
        dtype = DTYPES.index(getattr(torch, place["dtype"]))
        source = own.index(answer) if answer in own else -1
        told = [source, answer, dtype, slab.address + offset, count, step]
        row[2 * MOST_OUTPUTS : LOCK_WORD] = torch.tensor(told)
        compared = [_numbers(lock[name], torch.int64) for name in ("elements", "thresholds")]
        row[LOCK_WORD:] = torch.cat(compared)
    return row


def _words(slab: Memory, lock: dict[str, Any]) -> torch.Tensor:
    offset, count, step = lock["span"]
    span = Span(offset=offset, count=count, step=step)
    return span.words(slab.tensor(offset, (span.end - offset,), torch.uint8))


def _numbers(text: str, dtype: torch.dtype) -> torch.Tensor:
    return torch.frombuffer(bytearray(base64.b64decode(text)), dtype=dtype)
