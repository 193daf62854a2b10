"""What holds for every problem."""

from __future__ import annotations

import ast
import builtins
import dis
import inspect
from itertools import pairwise
from math import prod
from types import CodeType

import pytest
import torch

import problems
from problems.catalogue import reference_source
from problems.ranks import GlooRanks
from problems.screen import screen
from problems.spec import DEFAULT_TOLERANCES, Cost, Dims, GroupRef
from problems.trials import PROFILES, TrialSpec, correctness_trials, timed_trial
from problems.values import tensors
from tests.problems.rank_tasks import (
    bytes_received,
    context,
    dims_of,
    reference_against_oracle,
)

NAMES = problems.names()
FIVE = ["problem", "dims", "make_inputs", "reference", "cost"]
every_problem = pytest.mark.parametrize("name", NAMES)
both_profiles = pytest.mark.parametrize("profile", PROFILES)


def inputs_of(
    name: str, spec: TrialSpec, *, profile: str = "hardened", rank: int = 0, world_size: int = 2
) -> dict[str, object]:
    seen = context(name, spec, profile=profile, rank=rank, world_size=world_size)
    return problems.load(name).make_inputs(seen, dims_of(name, spec, world_size))


def trials_of(name: str, profile: str = "hardened", count: int = 6) -> tuple[TrialSpec, ...]:
    return correctness_trials(problems.load(name).problem, "tiny", profile, count, b"test")


def shapes_of(inputs: dict[str, object]) -> dict[str, object]:
    """Shapes of tensors, values of everything else."""
    return {
        name: [t.shape for t in tensors(value)] if tensors(value) else value
        for name, value in inputs.items()
    }


def identical(one: dict[str, object], other: dict[str, object]) -> bool:
    if shapes_of(one) != shapes_of(other):
        return False
    pairs = (zip(tensors(one[n]), tensors(other[n]), strict=True) for n in one)
    return all(torch.equal(a, b) for pair in pairs for a, b in pair)


@every_problem
def test_a_file_holds_five_names_in_order(name: str) -> None:
    body = ast.parse(problems.load(name).path.read_text()).body
    named = [
        node.name if isinstance(node, ast.FunctionDef) else ast.unparse(node.targets[0])
        for node in body
        if isinstance(node, (ast.FunctionDef, ast.Assign))
    ]
    public = [n for n in named if not n.startswith("_") and n != "oracle"]
    assert public == FIVE


@every_problem
def test_the_reference_runs_from_its_own_text_with_torch_alone(name: str) -> None:
    source = reference_source(problems.load(name))
    space: dict[str, object] = {}
    exec(compile(source, name, "exec"), space)
    known = set(space) | set(dir(builtins))
    unknown = {
        instruction.argval
        for value in space.values()
        if inspect.isfunction(value)
        for code in nested_code(inspect.unwrap(value).__code__)
        for instruction in dis.get_instructions(code)
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    } - known
    assert not unknown


def nested_code(code: CodeType) -> list[CodeType]:
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    return [code, *(found for c in inner for found in nested_code(c))]


@every_problem
def test_metadata_is_complete(name: str) -> None:
    module = problems.load(name)
    problem, parameters = module.problem, inspect.signature(module.reference).parameters
    texts = (problem.title, problem.source, problem.domain, problem.summary, problem.statement)
    assert all(text.strip() for text in (*texts, problem.tolerance_reason))
    assert len(problem.summary) <= 100
    assert [p for p in parameters if p not in problem.statement] == []
    assert problem.outputs
    assert set(problem.mutates) <= set(parameters)
    assert set(problem.sizes) == {"tiny", "standard", "large"}
    assert (problem.sizes["standard"].m, problem.sizes["standard"].n) == (1024, 1024)
    assert set(problem.tolerances) == set(DEFAULT_TOLERANCES)
    assert set(problem.also) <= set(problems.CATEGORIES.values()) - {module.category_title}


@every_problem
@both_profiles
def test_inputs_are_the_reference_s_parameters(name: str, profile: str) -> None:
    spec = trials_of(name, profile, 1)[0]
    expected = list(inspect.signature(problems.load(name).reference).parameters)
    assert list(inputs_of(name, spec, profile=profile)) == expected


@every_problem
@both_profiles
def test_the_same_trial_gives_the_same_inputs(name: str, profile: str) -> None:
    for spec in trials_of(name, profile):
        one, other = (inputs_of(name, spec, profile=profile) for _ in range(2))
        assert identical(one, other)


@every_problem
@both_profiles
def test_ranks_get_different_inputs(name: str, profile: str) -> None:
    spec = trials_of(name, profile, 1)[0]
    assert not identical(
        inputs_of(name, spec, profile=profile), inputs_of(name, spec, profile=profile, rank=1)
    )


@every_problem
def test_hardened_trials_get_different_inputs(name: str) -> None:
    timed = [timed_trial(problems.load(name).problem, "tiny", t) for t in (100, 101)]
    trials = [inputs_of(name, spec) for spec in (*trials_of(name), *timed)]
    assert not any(identical(one, other) for one, other in pairwise(trials))


@every_problem
@both_profiles
def test_timed_trials_keep_shapes_and_parameters(name: str, profile: str) -> None:
    problem = problems.load(name).problem
    for rank in range(4):
        first, *others = (
            shapes_of(
                inputs_of(
                    name, timed_trial(problem, "tiny", t), profile=profile, rank=rank, world_size=4
                )
            )
            for t in range(5)
        )
        assert all(other == first for other in others)


@every_problem
def test_hidden_shapes_can_be_built_for_every_world_size(name: str) -> None:
    for world_size in problems.load(name).problem.world_sizes:
        for spec in trials_of(name):
            inputs = inputs_of(name, spec, rank=world_size - 1, world_size=world_size)
            assert all(t.numel() for value in inputs.values() for t in tensors(value))


@every_problem
def test_groups_lie_on_the_mesh(name: str) -> None:
    module = problems.load(name)
    for world_size in module.problem.world_sizes:
        spec = trials_of(name, count=1)[0]
        d = dims_of(name, spec, world_size)
        axes = [axis for axis in module.problem.mesh if axis != "world"]
        assert prod(getattr(d, axis) for axis in axes) in (1, world_size)
        values = inputs_of(name, spec, world_size=world_size).values()
        used = {value.axis for value in values if isinstance(value, GroupRef)}
        assert used <= {"world", *axes}


@every_problem
def test_dims_are_integers(name: str) -> None:
    problem = problems.load(name).problem
    for size in problem.sizes.values():
        d: Dims = problems.load(name).dims(size.m, size.n, 4)
        assert all(type(value) is int for value in vars(d).values())


@every_problem
def test_cost_is_positive_and_grows(name: str) -> None:
    module = problems.load(name)
    for world_size in module.problem.world_sizes:
        costs = [
            module.cost(module.dims(size.m, size.n, world_size), world_size, 2)
            for size in module.problem.sizes.values()
        ]
        assert all(c.wire_bytes > 0 and c.hbm_bytes > 0 and c.flops >= 0 for c in costs)
        assert all(c.exchanges >= 1 for c in costs)
        assert all(grows(small, big) for small, big in pairwise(costs))


def grows(small: Cost, big: Cost) -> bool:
    """At least nowhere less, and more memory or more on the wire."""
    return (
        small.wire_bytes <= big.wire_bytes
        and small.flops <= big.flops
        and small.hbm_bytes + small.wire_bytes < big.hbm_bytes + big.wire_bytes
    )


@every_problem
@both_profiles
def test_the_reference_equals_its_oracle_on_two_ranks(
    name: str, profile: str, two_ranks: GlooRanks
) -> None:
    assert two_ranks.run(reference_against_oracle, name, profile) == [[], []]


@every_problem
@both_profiles
def test_the_reference_equals_its_oracle_on_four_ranks(
    name: str, profile: str, four_ranks: GlooRanks
) -> None:
    assert four_ranks.run(reference_against_oracle, name, profile) == [[], [], [], []]


@every_problem
def test_the_reference_receives_no_less_than_its_cost(name: str, four_ranks: GlooRanks) -> None:
    module = problems.load(name)
    spec = timed_trial(module.problem, "tiny", 0)
    cost = module.cost(dims_of(name, spec, 4), 4, 4)
    received = max(four_ranks.run(bytes_received, name))
    assert received >= cost.wire_bytes


@every_problem
def test_hardened_inputs_reject_wrong_answers_and_accept_honest_ones(
    name: str, two_ranks: GlooRanks, four_ranks: GlooRanks
) -> None:
    if not problems.load(name).problem.scored:
        return  # says in public why no inputs can do it
    for ranks in (two_ranks, four_ranks):
        surprises = [f for f in screen(ranks, name, "hardened") if not f.as_it_should_be]
        assert not surprises
