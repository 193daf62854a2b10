"""Inputs of a batch open with the answer of the call before, and with nothing else."""

from __future__ import annotations

import base64
import os
import runpy
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from evaluator.buffers import memory
from evaluator.buffers.input_locks import SPAN_BYTES, InputLock, kernel_for, make_lock, span_over
from evaluator.buffers.memory import Memory
from evaluator.buffers.scrambling import Span, key_of
from evaluator.buffers.slab import GUARD_BYTES, Place
from evaluator.rank.calls import Slot, Work
from evaluator.rank.chaining import chain
from evaluator.timing.timing import LOCK_PLACES, LOCKED_WORDS
from problems import guards
from problems.spec import EXACT, Tolerance
from tests.evaluator.kernel_files import HERE

TOLERANCE = Tolerance(atol=1e-2, rtol=1e-2)
CPU = torch.device("cpu")
MISBEHAVING = HERE / "misbehaving"
FLOATS = (torch.bfloat16, torch.float16, torch.float32, torch.float64)


@dataclass
class Scene:
    """A slab with an input of a call, and the place of the answer of the call before."""

    slab: Memory
    answer: Place
    inputs: torch.Tensor
    original: torch.Tensor
    lock: InputLock

    def opened(self, answer: torch.Tensor) -> bool:
        """Whether such an answer opens the lock; the scene is used up."""
        work = Work(solution=print, groups={}, names=("answer",))
        nodes = [
            {"arguments": [], "outputs": outputs, "changed": []}
            for outputs in ([], [self.answer.node()])
        ]
        after, before = (Slot(self.slab, work, node) for node in nodes)
        told = {"calls": [1, 0], "locks": [None, self.lock.node], "warm_up": []}
        chain(self.slab, [after, before], {**told, "kernel": kernel_for(self.slab.device)})
        right = answer.to(before.outputs[0])
        before.finish.after_call(before, right, [])
        assert torch.equal(before.outputs[0].nan_to_num(), right.nan_to_num())
        return torch.equal(self.inputs, self.original)


def scene(
    truth: torch.Tensor, dtype: torch.dtype = torch.float32, device: torch.device = CPU
) -> Scene:
    answer = Place(offset=GUARD_BYTES, shape=tuple(truth.shape), dtype=dtype)
    given = Place(offset=2 * GUARD_BYTES + answer.nbytes, shape=(3, 40_001), dtype=torch.bfloat16)
    fd, slab = memory.create(device, given.offset + given.nbytes + GUARD_BYTES)
    os.close(fd)
    inputs = slab.tensor(given.offset, given.shape, given.dtype)
    original = torch.randn(given.shape, dtype=given.dtype).to(device)
    lock = make_lock(span_over((given,)), [(answer, truth.to(device))], TOLERANCE)
    assert lock is not None
    lock.write(slab.everything, [(given.offset, original.view(-1).view(torch.uint8))])
    return Scene(slab, answer, inputs, original, lock)


def a_truth() -> torch.Tensor:
    return torch.randn(64, 64, dtype=torch.float64)


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_right_answer_opens_a_lock(dtype: torch.dtype) -> None:
    truth = a_truth()
    assert scene(truth, dtype).opened(truth)


def test_an_answer_within_the_tolerance_does_too() -> None:
    truth = a_truth()
    allowed = TOLERANCE.atol + TOLERANCE.rtol * truth.abs()
    assert scene(truth).opened(truth + allowed * torch.randn_like(truth).sign())


@pytest.mark.parametrize("wrong", ["zeros", "another", "nan", "half"])
def test_another_answer_does_not(wrong: str) -> None:
    truth = a_truth()
    half = torch.where(torch.arange(64) % 2 == 0, truth, 0.0)
    answers = {
        "zeros": torch.zeros_like(truth),
        "another": a_truth(),
        "nan": truth * torch.nan,
        "half": half,
    }
    assert not scene(truth).opened(answers[wrong])


def test_locked_inputs_cannot_be_used() -> None:
    found = scene(a_truth())
    changed = (found.inputs != found.original).view(-1)
    words = found.lock.span.count
    assert LOCKED_WORDS <= words < 2 * LOCKED_WORDS
    assert changed.sum() > 3 * words  # a word is four numbers, and few of them stay by chance


def test_a_span_leaves_everything_around_it_alone() -> None:
    places = tuple(
        Place(offset=offset, shape=(1000,), dtype=torch.float32) for offset in (65536, 262144)
    )
    lock = make_lock(span_over(places), [(places[0], torch.randn(1000))], TOLERANCE)
    assert lock is not None
    slab = torch.zeros(1 << 20, dtype=torch.uint8)
    lock.write(slab, [(place.offset, torch.zeros(4000, dtype=torch.uint8)) for place in places])
    touched = 8 * slab.view(torch.int64).nonzero()  # a byte may stay by chance, a word does not
    assert touched.min() == places[0].offset
    assert touched.max() < places[1].offset + places[1].nbytes


def test_more_than_a_span_is_written_as_it_is() -> None:
    whole = Place(offset=256, shape=(SPAN_BYTES + 1000,), dtype=torch.uint8)
    behind = Place(offset=SPAN_BYTES + 65536, shape=(1000,), dtype=torch.uint8)
    answer = Place(offset=0, shape=(1000,), dtype=torch.float32)
    lock = make_lock(span_over((whole, behind)), [(answer, torch.randn(1000))], TOLERANCE)
    assert lock is not None
    slab = torch.zeros(behind.offset + 1000, dtype=torch.uint8)
    ones = torch.ones(whole.nbytes, dtype=torch.uint8)
    lock.write(slab, [(whole.offset, ones), (behind.offset, ones[:1000])])
    end = whole.offset + SPAN_BYTES
    assert int((slab[whole.offset : end] != 1).sum()) > 7 * LOCKED_WORDS
    assert bool((slab[end : end + 1000] == 1).all())
    assert bool((slab[behind.offset :] == 1).all())


def test_two_locks_have_two_keys_and_places() -> None:
    truth = a_truth()
    one, other = scene(truth).lock, scene(truth).lock
    assert one.key != other.key
    assert one.node["elements"] != other.node["elements"]


def test_thresholds_lie_on_both_sides_of_the_truth() -> None:
    lock = scene(torch.ones(1000, dtype=torch.float64)).lock
    above = _decoded(lock.node)["thresholds"] < 1.0
    assert 20 < int(above.sum()) < LOCK_PLACES - 20


@pytest.mark.parametrize(
    "truth",
    [
        torch.zeros(1000),
        torch.full((1000,), torch.inf),
        torch.randn(LOCK_PLACES - 1),
        torch.zeros(0),
    ],
)
def test_what_anybody_can_guess_locks_nothing(truth: torch.Tensor) -> None:
    place = Place(offset=0, shape=tuple(truth.shape), dtype=torch.float32)
    assert make_lock(Span(offset=0, count=1, step=1), [(place, truth)], EXACT) is None


def test_nothing_is_locked_without_inputs_or_floating_point_answers() -> None:
    answer = Place(offset=0, shape=(1000,), dtype=torch.float32)
    indices = Place(offset=0, shape=(1000,), dtype=torch.int64)
    empty = Place(offset=0, shape=(0,), dtype=torch.float32)
    truth, span = torch.randn(1000), Span(offset=0, count=1, step=1)
    assert make_lock(span, [(answer, truth)], EXACT)
    assert make_lock(span, [(indices, torch.arange(1000))], EXACT) is None
    assert make_lock(span_over((empty,)), [(answer, truth)], EXACT) is None


def test_of_a_key_enough_places_are_secret() -> None:
    """However little of an answer is unknown: 2^32 keys take longer to try than a call."""
    assert guards.LEAST_SHARE * LOCK_PLACES >= 32


def _spelled(kernel: str, own: torch.Tensor, truth: torch.Tensor) -> bool:
    """Whether a hostile kernel has the key of a lock from its own inputs and the thresholds."""
    attack = runpy.run_path(str(MISBEHAVING / f"{kernel}.py"))
    lock = scene(truth).lock
    given = own.flatten(), *_decoded(lock.node).values()
    tried = (
        [attack["key_places"](*given)] if "key_places" in attack else attack["keys_to_try"](*given)
    )
    return lock.key in {int(key_of(above)) for above in tried}


@pytest.mark.parametrize("kernel", ["factor_spelled_by_thresholds", "keys_tried_over_one_number"])
def test_one_unknown_is_spelled_by_thresholds_and_many_are_not(kernel: str) -> None:
    """Why the audit counts unknowns: no lock is made of an answer that has few."""
    own = a_truth()
    assert _spelled(kernel, own, 0.37 * own)
    assert not _spelled(kernel, own, a_truth())
    assert not _spelled(kernel, own, own * torch.rand(64, 1, dtype=torch.float64))


@pytest.mark.gpu(1)
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_gpu_opens_what_the_judge_locked(dtype: torch.dtype) -> None:
    device, truth = torch.device("cuda", 0), a_truth()
    torch.cuda.set_device(device)
    assert scene(truth, dtype, device).opened(truth.to(device))
    assert not scene(truth, dtype, device).opened(a_truth().to(device))


def _decoded(node: dict[str, Any]) -> dict[str, torch.Tensor]:
    """Its elements and thresholds, in this order."""
    dtypes = {"elements": torch.int64, "thresholds": torch.float64}
    raw = {name: bytearray(base64.b64decode(node[name])) for name in dtypes}
    return {name: torch.frombuffer(raw[name], dtype=dtype) for name, dtype in dtypes.items()}
