"""Give the screen wrong answers that do part of the work: a sample, a neighbour, fewer arguments.

What sums up much in a few numbers, as a norm or a loss does, could be cut short alone: an answer
has a variant for each such output, in which all others are right, and passes where one does.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from problems import ProblemModule
from problems.audit.partial_collectives import counts_changed, neighbour_only, without_last_element
from problems.audit.scene import Answer, Scene, Variants
from problems.running.calls import Outputs, mapped, widened
from problems.spec import GroupRef
from problems.values import equal_tensors, rebuilt, tensors

SMALL = 8  # elements at most of an output that sums up


def _sampled(scene: Scene, others: list[Scene]) -> Variants:
    """Let every second row of each argument of real numbers stand for the row after it, too."""
    return _variants(scene, scene.reference(mapped(scene.inputs, _every_second)))


def _every_second(value: Tensor) -> Tensor:
    axis = _rows_axis(value)
    if axis is None:
        return value
    rows = torch.arange(value.shape[axis], device=value.device) // 2 * 2
    return _plain(value).index_select(axis, rows).view(value.dtype)


def _rows_axis(value: Tensor) -> int | None:
    """Return the first axis along which there are several real numbers."""
    if not (value.is_floating_point() or value.is_complex()):
        return None
    return next((axis for axis, length in enumerate(value.shape) if length > 1), None)


def _plain(value: Tensor) -> Tensor:
    """Return the tensor in a dtype that torch can index; float8 as bytes."""
    return value.view(torch.uint8) if value.dtype.itemsize == 1 else value


def _neighbour_only(scene: Scene, others: list[Scene]) -> Variants | None:
    if scene.context.world_size == 2:
        return None  # the neighbour is every other
    with neighbour_only() as forgotten:
        got = scene.reference()
    found = _variants(scene, got)
    return found if forgotten else None  # sums on a GPU differ from call to call


def _drop_last_element(scene: Scene, others: list[Scene]) -> Variants:
    """Zero the last row of each argument of real numbers in turn, then the last number sent."""
    found: Variants = {}
    for name, value in scene.inputs.items():
        if any(_rows_axis(t) is not None for t in tensors(value)):
            less = {**scene.inputs, name: rebuilt(value, _without_last)}
            found |= _variants(scene, scene.reference(less), name)
    with without_last_element():
        return found | _variants(scene, scene.reference(), "what is sent")


def _without_last(value: Tensor) -> Tensor:
    axis = _rows_axis(value)
    if axis is None:
        return value
    copy = value.clone(memory_format=torch.contiguous_format)
    _plain(copy).select(axis, -1).zero_()
    return copy


def _ignoring(name: str) -> Answer:
    def give(scene: Scene, others: list[Scene]) -> Variants:
        """Replace an option by its default, or by the published value where it has none."""
        parameter = inspect.signature(scene.module.reference).parameters[name]
        usual = parameter.default
        if usual is parameter.empty:
            usual = scene.published.get(name)
        if not scene.on_any_rank(not _same(scene.inputs[name], usual)):
            return {}
        return _variants(scene, scene.reference({**scene.inputs, name: usual}))

    return give


def _same(one: object, other: object) -> bool:
    if isinstance(one, GroupRef) and other is None:
        return one.axis == "world"
    given, taken = tensors(one), tensors(other)
    if given or taken:
        same = [t.shape for t in given] == [t.shape for t in taken]
        return same and equal_tensors(one, other)
    return one == other


def _even_counts(scene: Scene, others: list[Scene]) -> Variants:
    """Take the numbers of elements that ranks tell each other for their mean."""
    return _told(scene, lambda told: told.fill_(told.sum() // max(1, told.numel())))


def _first_counts(scene: Scene, others: list[Scene]) -> Variants:
    """Take the numbers of elements that ranks tell each other for those of the first call."""
    before = iter(min([scene, *others], key=lambda one: one.context.spec.trial).counts)

    def recall(told: Tensor) -> None:
        one = next(before, None)
        if one is not None and one.shape == told.shape:
            told.copy_(one)

    return _told(scene, recall)


def _told(scene: Scene, change: Callable[[Tensor], object]) -> Variants:
    """Call the reference where every number of elements that ranks tell each other is changed."""
    if not scene.on_any_rank(bool(scene.counts)):
        return {}
    with counts_changed(change):
        return _variants(scene, scene.reference())


def _variants(scene: Scene, got: Outputs, label: str = "") -> Variants:
    """Return the answer if it changes anything, and each small output of it alone that changes,
    with the truth in place of all others."""
    got, own = scene.settled(got), scene.own
    if len(got) == len(own) and all(map(_equal, got, own)):
        return {}
    found: Variants = {label: got}
    for index, mine in enumerate(got if len(got) == len(own) > 1 else ()):
        if mine.numel() <= SMALL and not _equal(mine, own[index]):
            alone = (*scene.truth[:index], mine, *scene.truth[index + 1 :])
            found[f"{label}, output {index}".removeprefix(", ")] = alone
    return found


def _equal(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape:
        return False
    one, other = widened(one), widened(other)  # float8 knows no comparison
    return bool(((one == other) | (one.isnan() & other.isnan())).all())


PARTIAL: Mapping[str, Answer] = {
    "sampled": _sampled,
    "neighbour-only": _neighbour_only,
    "drop-last-element": _drop_last_element,
    "even-counts": _even_counts,
    "first-counts": _first_counts,
}


def ignored_options(module: ProblemModule) -> Mapping[str, Answer]:
    """Return an answer for each argument that is no tensor, or has a default: without a look at
    it. Not for process groups: ranks that take another one wait for each other for ever."""
    parameters = inspect.signature(module.reference).parameters
    shown = {name: inspect.formatannotation(own.annotation) for name, own in parameters.items()}
    return {
        f"ignore-{name}": _ignoring(name)
        for name, parameter in parameters.items()
        if "ProcessGroup" not in shown[name]
        and (parameter.default is not parameter.empty or "Tensor" not in shown[name])
    }
