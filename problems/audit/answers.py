"""Give the screen answers to try: cheap wrong ones, and honest ones that round in other ways."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import count, product

import torch
from torch import Tensor

from problems import ProblemModule
from problems.audit.mutants import mutants
from problems.audit.partial_answers import PARTIAL, ignored_options
from problems.audit.scene import Answer, Scene, Variants
from problems.audit.substitutes import (
    SplitProducts,
    local_only,
    reversed_reduction,
    truncated,
)
from problems.audit.wires import BLOCKS, FP8, INT8, INT16, Code, coarse
from problems.running.calls import Outputs, mapped, mutated, true_answer, widened
from problems.values import equal_tensors, tensors

FLOATS = {torch.float32, torch.bfloat16, torch.float16}


def _zeros(scene: Scene, others: list[Scene]) -> Outputs:
    return tuple(torch.zeros_like(t) for t in scene.truth)


def _constant(scene: Scene, others: list[Scene]) -> Outputs:
    """Fill with the mean of another trial's answer, or its first element where that is no float. It
    is a trial with as many outputs, or this one where no other has them."""
    alike = [other for other in others if len(other.truth) == len(scene.truth)]
    return tuple(
        torch.full_like(truth, _typical(other).item())
        for truth, other in zip(scene.truth, [*alike, scene][0].truth, strict=True)
    )


def _typical(values: Tensor) -> Tensor:
    if not values.numel():
        return torch.zeros(())
    wide = widened(values)  # isfinite does not know float8
    return wide[wide.isfinite()].mean() if wide.is_floating_point() else values.flatten()[0]


def _pass_through(scene: Scene, others: list[Scene]) -> Outputs:
    given = [t for value in scene.inputs.values() for t in tensors(value)]
    outputs = scene.truth[: len(scene.truth) - len(mutated(scene.module.problem, scene.inputs))]
    answer = [
        next((t for t in given if t.shape == wanted.shape), torch.zeros_like(wanted))
        for wanted in outputs
    ]
    return (*answer, *mutated(scene.module.problem, scene.inputs))


def _local_only(scene: Scene, others: list[Scene]) -> Outputs:
    with local_only():
        return scene.reference()


def _skip_one_rank(scene: Scene, others: list[Scene]) -> Outputs:
    """Let the last rank contribute zeros in place of everything that is its own."""
    context = scene.context
    if context.rank != context.world_size - 1:
        return scene.reference()
    neighbour = replace(context, rank=context.rank - 1, _streams={}, _choices=count())
    dims = scene.module.dims(context.spec.m, context.spec.n, context.world_size)
    theirs = scene.module.make_inputs(neighbour, dims)
    shared = {name for name, value in scene.inputs.items() if equal_tensors(value, theirs[name])}
    has_floats = any(_is_real(t) for value in scene.inputs.values() for t in tensors(value))
    zeroed = mapped(scene.inputs, _zeroed_float if has_floats else torch.zeros_like)
    return scene.reference(
        {name: scene.inputs[name] if name in shared else zeroed[name] for name in scene.inputs}
    )


def _is_real(value: Tensor) -> bool:
    return value.is_floating_point() or value.is_complex()


def _zeroed_float(value: Tensor) -> Tensor:
    """Zero floats only: sizes and ids that others rely on would break the exchange itself."""
    return torch.zeros_like(value) if _is_real(value) else value


def _another_trial(scene: Scene, others: list[Scene]) -> Outputs:
    """Return the answer of another trial of these shapes; zeros where there is none."""
    shapes = [t.shape for t in scene.truth]
    for other in others:
        if [t.shape for t in other.truth] == shapes:
            return other.truth
    return _zeros(scene, others)


def _stale_rows(scene: Scene, others: list[Scene]) -> Outputs:
    """Put another trial's values, or zeros, into the last 1 % of rows of the truth."""
    mixed = []
    pairs = zip(scene.truth, _another_trial(scene, others), strict=True)
    for truth, stale in pairs:
        rows = truth.clone().reshape(-1, truth.shape[-1] if truth.dim() > 1 else 1)
        first = len(rows) - max(1, len(rows) // 100)
        rows[first:] = stale.reshape(rows.shape)[first:]
        mixed.append(rows.view(truth.shape))
    return tuple(mixed)


def _low_precision(scene: Scene, others: list[Scene]) -> Outputs | None:
    """Call the reference on inputs that lost most of their mantissa, as if sent so.

    Returns None where cutting changes no input of any rank.
    """
    cut = mapped(scene.inputs, truncated)
    differs = any(not equal_tensors(value, cut[name]) for name, value in scene.inputs.items())
    return scene.reference(cut) if scene.on_any_rank(differs) else None


def _reference(scene: Scene, others: list[Scene]) -> Outputs:
    return scene.reference()


def _float64_then_cast(scene: Scene, others: list[Scene]) -> Outputs:
    return _exact(scene, scene.reference())


def _over(code: Code, dtypes: Collection[torch.dtype]) -> Answer:
    """Return an answer, for runs of these dtypes, that is exact but for a wire with this code.

    None where nothing that the reference sends has more bits, or where the problem allows it.
    """

    def answer(scene: Scene, others: list[Scene]) -> Variants | None:
        least_bits = scene.module.problem.wire_bits
        if scene.context.dtype not in dtypes or (least_bits and least_bits <= code.bits):
            return None
        with coarse(code) as wire:
            rounded = scene.reference()
        if not scene.on_any_rank(bool(wire.lossy)):
            return None
        with coarse(code) as wire:
            found = {"": _exact(scene, rounded)}
        lines = scene.lines_on_any_rank(wire.lossy)
        if scene.context.dtype is torch.bfloat16:  # its tolerances are the widest
            for variant, (other, line) in _more_wires(code, lines).items():
                with coarse(other, line):
                    found[variant] = _exact(scene, rounded)
        return {variant: got for variant, got in found.items() if not _is_true(got, scene)}

    return answer


def _more_wires(code: Code, lines: Sequence[int]) -> dict[str, tuple[Code, int | None]]:
    """Return more wires by name: other blocks, and one collective alone where there are several.

    Floats of 8 bits lose little more in larger blocks, so only integers have them.
    """
    blocks = BLOCKS if code is INT8 else (code.block,)
    alone = lines if len(lines) > 1 else ()
    found: dict[str, tuple[Code, int | None]] = {}
    for line, block in product((None, *alone), blocks):
        what = f"of line {line} alone" if line else "of all lines"
        size = f"blocks of {block}" if block else "a scale for each tensor"
        found[f"{what}, {size}"] = (replace(code, block=block), line)
    found.pop(f"of all lines, blocks of {code.block}")  # it has been tried
    return found


def _exact(scene: Scene, rounded: Outputs) -> Outputs:
    """Return the oracle's answer in the dtypes of `rounded`."""
    exact = [wide for _, wide in true_answer(scene.module, scene.inputs, scene.groups)]
    return tuple(wide.to(narrow.dtype) for wide, narrow in zip(exact, rounded, strict=True))


def _is_true(got: Outputs, scene: Scene) -> bool:
    """Return True where a wire changed no value on its way to this rank."""
    pairs = zip(got, scene.truth, strict=True)
    return all(torch.equal(mine, true.to(mine.dtype)) for mine, true in pairs)


def _reversed_reduction(scene: Scene, others: list[Scene]) -> Outputs:
    with reversed_reduction():
        return scene.reference()


def _split_products(scene: Scene, others: list[Scene]) -> Outputs:
    with SplitProducts():
        return scene.reference()


WRONG: Mapping[str, Answer] = {
    "zeros": _zeros,
    "constant": _constant,
    "pass-through": _pass_through,
    "local-only": _local_only,
    "skip-one-rank": _skip_one_rank,
    "another-trial": _another_trial,
    "stale-rows": _stale_rows,
    "low-precision": _low_precision,
}
COARSE: Mapping[str, Answer] = {
    "int8-wire": _over(INT8, FLOATS),
    "fp8-wire": _over(FP8, FLOATS),
    "int16-wire": _over(INT16, {torch.float32}),
}
HONEST: Mapping[str, Answer] = {
    "reference": _reference,
    "float64-then-cast": _float64_then_cast,
    "reversed-reduction": _reversed_reduction,
    "split-products": _split_products,
}


def answers(module: ProblemModule, profile: str) -> Mapping[str, Answer]:
    """Return every answer to try on a problem: general wrong ones, its mutants, honest ones.

    Of `upstream` few are enough to tell what the published check lets pass: its size takes long.
    """
    if profile == "upstream":
        return {**WRONG, **HONEST}
    more = {**COARSE, **PARTIAL, **ignored_options(module), **mutants(module)}
    return {**WRONG, **more, **HONEST}
