"""Arguments of every kind through a slab and back, and what a call may return or replace."""

from __future__ import annotations

import json
import mmap
from collections.abc import Callable
from typing import Any

import pytest
import torch

from evaluator.buffers.memory import Memory
from evaluator.buffers.slab import Cursor, SlotLayout, lay_out
from evaluator.rank.calls import Slot, Work
from evaluator.rank.failure_claim import CallFault
from problems.running.calls import widened
from problems.values import linear, named_outputs, rebuilt, sparse, tensors

Outputs = list[tuple[tuple[int, ...], torch.dtype]]
LAYER = linear(torch.randn(3, 5), torch.randn(3))
COO = sparse(torch.tensor([[0, 1], [2, 0]]), torch.tensor([1.5, -2.0]), (2, 3))


class Table:
    """One slot in memory that a rank would map."""

    def __init__(
        self, inputs: dict[str, object], outputs: Outputs, mutates: tuple[str, ...] = ()
    ) -> None:
        cursor = Cursor()
        self.layout: SlotLayout = lay_out(cursor, inputs, outputs, mutates)
        self.slab = mmap.mmap(-1, cursor.close())
        flat = [t for value in inputs.values() for t in tensors(value)]
        for place, tensor in zip(self.layout.inputs, flat, strict=True):
            data = tensor.contiguous().view(-1).view(torch.uint8).numpy().tobytes()
            self.slab[place.offset : place.offset + place.nbytes] = data

    def slot(self, names: tuple[str, ...] = ("out",)) -> Slot:
        node: dict[str, Any] = json.loads(json.dumps(self.layout.node()))
        slab = Memory(device=torch.device("cpu"), nbytes=len(self.slab), mapped=self.slab)
        work = Work(solution=lambda: None, groups={}, names=names)
        return Slot(slab, work, node)

    def call(self, solution: Callable[..., object], names: tuple[str, ...] = ("out",)) -> None:
        self.call_in(self.slot(names), solution)

    @staticmethod
    def call_in(slot: Slot, solution: Callable[..., object]) -> None:
        slot.solution = solution
        slot.call()

    def input(self, index: int) -> torch.Tensor:
        place = self.layout.inputs[index]
        raw = bytearray(self.slab[place.offset : place.offset + place.nbytes])
        return torch.frombuffer(raw, dtype=place.dtype).view(place.shape)


@pytest.mark.parametrize(
    "value",
    [
        torch.randn(2, 3),
        torch.randn(4, dtype=torch.complex64),
        torch.randn(8).to(torch.float8_e4m3fn),
        torch.randn(4, 6).t(),
        torch.tensor(True),
        [torch.ones(2), (torch.zeros(3, dtype=torch.int64), [torch.ones(1)])],
        LAYER,
        linear(torch.randn(2, 2), None),
        COO,
        torch.Size((3, 4)),
        ((4, 2), (3,)),
        [2, 3],
        (),
        None,
        0.25,
        "ortho",
    ],
)
def test_an_argument_arrives_as_it_was(value: object) -> None:
    seen: list[object] = []
    table = Table({"x": value}, [((), torch.float32)])
    table.call(lambda x: seen.append(x) or torch.ones(()))  # type: ignore[func-returns-value]
    assert type(seen[0]) is type(value)
    if tensors(value):
        for got, sent in zip(tensors(seen[0]), tensors(value), strict=True):
            assert got.dtype is sent.dtype
            assert torch.equal(got.to(torch.complex128), sent.to(torch.complex128))
    else:
        assert seen[0] == value


def test_a_layer_and_a_sparse_matrix_compute_as_they_did() -> None:
    table = Table({"layer": LAYER, "coo": COO}, [((2,), torch.float32), ((2,), torch.float32)])
    x, y = torch.randn(5), torch.randn(3)
    seen: list[torch.Tensor] = []

    def solution(layer: torch.nn.Linear, coo: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        assert (layer.in_features, layer.out_features) == (5, 3)
        seen.extend([layer(x), coo @ y])
        return seen[0][:2], seen[1]

    table.call(solution, ("a", "b"))
    assert torch.equal(seen[0], LAYER(x))
    assert torch.equal(seen[1], COO @ y)


def test_an_entry_that_replaces_another_is_copied_back() -> None:
    values = [torch.zeros(3), torch.zeros(2)]
    table = Table({"values": values}, [((), torch.float32)], mutates=("values",))
    slot = table.slot()

    def solution(values: list[torch.Tensor]) -> torch.Tensor:
        values[0] = torch.full((3,), 7.0)
        values[1].fill_(5.0)
        return torch.ones(())

    table.call_in(slot, solution)
    assert table.input(0).tolist() == [7.0] * 3
    assert table.input(1).tolist() == [5.0] * 2


def test_a_list_is_whole_again_for_the_next_call() -> None:
    table = Table({"values": [torch.zeros(3)]}, [((), torch.float32)])
    slot = table.slot()
    lengths: list[int] = []

    def solution(values: list[torch.Tensor]) -> torch.Tensor:
        lengths.append(len(values))
        values.clear()
        return torch.ones(())

    table.call_in(slot, solution)
    table.call_in(slot, solution)
    assert lengths == [1, 1]


@pytest.mark.parametrize(
    ("returned", "verdict", "text"),
    [
        ({"a": torch.ones(2)}, "shape_mismatch", "the returned dict lacks b"),
        (torch.ones(2), "shape_mismatch", "1 outputs returned, 2 expected"),
        ((torch.ones(2), 3), "runtime_error", "int returned for b, not a tensor"),
        ((torch.ones(2), torch.ones(3)), "shape_mismatch", "b has shape (3,), (2,) expected"),
        ((torch.ones(2), torch.ones(2).double()), "dtype_mismatch", "b is torch.float64"),
        ((torch.ones(2), [torch.ones(2)] * 2), "shape_mismatch", "3 tensors returned, 2"),
    ],
)
def test_a_wrong_result_is_told_apart(returned: object, verdict: str, text: str) -> None:
    table = Table({"x": None}, [((2,), torch.float32)] * 2)
    with pytest.raises(CallFault) as fault:
        table.call(lambda _: returned, ("a", "b"))
    assert fault.value.verdict == verdict
    assert text in fault.value.text


def test_outputs_are_named_flat() -> None:
    one, two, three = torch.ones(1), torch.ones(2), torch.ones(3)
    assert named_outputs(("a",), one) == [("a", one)]
    assert named_outputs(("a", "b"), {"b": two, "a": one}) == [("a", one), ("b", two)]
    flat = named_outputs(("a", "b"), ([one, two], None, torch.Size((1,)), three))
    assert [name for name, _ in flat] == ["a[0]", "a[1]", "b"]
    assert [name for name, _ in named_outputs(("a",), [one, two])] == ["a[0]", "a[1]"]


def test_trees_are_rebuilt_with_every_tensor_changed() -> None:
    wide = rebuilt(
        [LAYER, (COO, torch.ones(1, dtype=torch.complex64)), 3, torch.Size((2,))], widened
    )
    assert isinstance(wide, list)
    assert [t.dtype for t in tensors(wide)] == [
        torch.float64,
        torch.float64,
        torch.int64,
        torch.float64,
        torch.complex128,
    ]
    assert wide[2:] == [3, torch.Size((2,))]
