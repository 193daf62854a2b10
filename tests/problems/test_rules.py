"""Every rule finds the fault that it is there for."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import problems
from problems import ProblemModule, skeleton
from problems.audit.drawn_options import statement_is_drawn
from problems.audit.rules import RULES, inputs_of
from problems.context import RankContext
from problems.spec import EXACT_TOLERANCES, Cost, Dims, GroupRef, Size, tolerances
from problems.trials import correctness_trials

GOOD = problems.load("collective_primitive.reduce")
LOOSER = tolerances(float32=1e-9, bfloat16=1.0, float16=1e-9)


def with_problem(**changes: Any) -> ProblemModule:
    return replace(GOOD, problem=replace(GOOD.problem, **changes))


def with_inputs(make: Callable[[RankContext, Dims], dict[str, object]]) -> ProblemModule:
    return replace(GOOD, make_inputs=make)


def with_text(folder: Path, old: str, new: str) -> ProblemModule:
    path = folder / "reduce.py"
    text = GOOD.path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return replace(GOOD, path=path)


def one_cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    return Cost(wire_bytes=1, flops=0, hbm_bytes=1)


def fresh(ctx: RankContext, d: Dims) -> dict[str, object]:
    return {"tensor": torch.randn(d.m, d.n), "dst": 0}


def constant(ctx: RankContext, d: Dims) -> dict[str, object]:
    return {"tensor": torch.ones(d.m, d.n), "dst": 0}


def by_rank_alone(ctx: RankContext, d: Dims) -> dict[str, object]:
    return {"tensor": torch.full((d.m, d.n), float(ctx.rank)), "dst": 0}


def swapped(ctx: RankContext, d: Dims) -> dict[str, object]:
    return {"dst": 0, "tensor": ctx.randn(d.m, d.n)}


def on_an_unknown_axis(ctx: RankContext, d: Dims) -> dict[str, object]:
    return {"tensor": ctx.randn(d.m, d.n), "dst": ctx.group("diagonal")}


def published_alone(ctx: RankContext, d: Dims) -> dict[str, object]:
    return {"tensor": ctx.randn(d.m, d.n)}


def without_a_matrix(ctx: RankContext, d: Dims) -> dict[str, object]:
    return ctx.pick({}, {"tensor": ctx.randn(d.m, d.n), "dst": 0})


def to_rank_zero(ctx: RankContext, d: Dims) -> dict[str, object]:
    return {"tensor": ctx.randn(d.m, d.n), "dst": 0}


def empty(ctx: RankContext, d: Dims) -> dict[str, object]:
    return {"tensor": ctx.randn(0, d.n), "dst": 0}


@pytest.mark.parametrize(
    ("rule", "module", "told"),
    [
        ("metadata", with_problem(title=" "), "title is empty"),
        ("metadata", with_problem(statement="Sum it."), "name the argument tensor"),
        ("metadata", with_problem(summary="x" * 101), "longer than 100"),
        ("metadata", with_problem(outputs=()), "outputs is empty"),
        ("metadata", with_problem(mutates=("nothing",)), "no arguments"),
        ("metadata", with_problem(also=("Nowhere Parallel",)), "no other category"),
        ("metadata", with_problem(tolerances={}), "tolerances are wanted"),
        ("metadata", with_problem(output_tolerances={"result": LOOSER}), "has a looser one"),
        ("metadata", with_problem(output_tolerances={"gone": EXACT_TOLERANCES}), "is no output"),
        ("metadata", with_problem(sizes={"tiny": Size(m=1, n=1)}), "must begin with"),
        ("metadata", with_problem(ranked_from=3, ranked_from_reason="odd"), "no world size"),
        ("metadata", with_problem(ranked_from=4), "says why"),
        ("metadata", with_problem(ranked_from_reason="odd"), "says why"),
        ("inputs_follow_the_signature", with_inputs(swapped), "inputs are dst, tensor"),
        (
            "inputs_follow_the_signature",
            with_inputs(published_alone),
            "hardened inputs are tensor;",
        ),
        ("inputs_follow_the_signature", with_inputs(without_a_matrix), "upstream inputs are ;"),
        ("inputs_can_be_repeated", with_inputs(fresh), "drawn again"),
        ("ranks_differ", with_inputs(constant), "the same on ranks 0 and 1"),
        ("trials_differ", with_inputs(by_rank_alone), "have the same inputs"),
        ("hidden_shapes_can_be_built", with_inputs(empty), "no input holds anything"),
        ("groups_lie_on_the_mesh", with_inputs(on_an_unknown_axis), "diagonal"),
        ("groups_lie_on_the_mesh", with_problem(mesh=("m", "n")), "does not hold"),
        ("dims_are_integers", replace(GOOD, dims=lambda m, n, w: Dims(m=m / 2, n=n)), "dims: m"),
        ("cost_is_positive_and_grows", replace(GOOD, cost=one_cost), "does not grow"),
        ("large_is_bound_by_data", replace(GOOD, cost=one_cost), "less than ten launches"),
        (
            "mutants_fit_the_reference",
            replace(GOOD, slug="clip_grad_norm_no_ep"),
            "is 0 times in the reference",
        ),
        ("options_are_drawn", with_inputs(to_rank_zero), "dst is 0 in every trial"),
        ("file_shape", replace(GOOD, keys=lambda *_: ()), "come together"),
    ],
)
def test_a_rule_finds_its_fault(rule: str, module: ProblemModule, told: str) -> None:
    assert RULES[rule](GOOD) == []
    assert told in "\n".join(RULES[rule](module))


def test_every_rule_is_seen_to_fail() -> None:
    (mark,) = test_a_rule_finds_its_fault.pytestmark  # type: ignore[attr-defined]
    assert {case[0] for case in mark.args[1]} | {"reference_runs_alone"} == set(RULES)


def test_a_missing_name_and_a_foreign_one_are_found(tmp_path: Path) -> None:
    renamed = with_text(tmp_path, "def cost(", "def price(")
    assert "it must define" in RULES["file_shape"](renamed)[0]
    foreign = with_text(tmp_path, "dist.reduce(total, dst=dst)", "dist.reduce(total, dst=math.pi)")
    assert RULES["reference_runs_alone"](foreign) == ["the reference uses math from outside"]


@pytest.mark.parametrize(
    ("category", "slug", "told"),
    [
        ("nowhere", "fine", "no category 'nowhere'"),
        ("other", "Not Fine", "no module name"),
        ("other", "../escape", "no module name"),
        ("collective_primitive", "reduce", "already"),
    ],
)
def test_a_problem_that_cannot_be_started_is_refused(category: str, slug: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        skeleton.create(category, slug)


def test_a_skeleton_runs_and_lacks_only_words(tmp_path: Path) -> None:
    shutil.copytree(problems.FOLDER, tmp_path / "problems")

    def say(*words: str) -> tuple[int, list[str]]:
        command = [sys.executable, "-m", "problems", *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.splitlines()

    assert say("new", "other", "fine_problem")[0] == 0
    status, lines = say("check", "fine_problem")
    missing = [f"{name} is empty" for name in ("source", "domain", "summary", "statement")]
    missing.append("the statement does not name the argument tensor")
    expected = [f"other.fine_problem: {complaint}" for complaint in missing]
    assert (status, lines) == (1, [*expected, "5 complaints"])


def drawn_reference(x: torch.Tensor, bias: torch.Tensor | None, factor: float = 2.0) -> None:
    """Stand for a reference: the rule reads its signature alone."""


@pytest.mark.parametrize(
    ("statement", "values", "lacks"),
    [
        ("Add bias, None or [n], to x times factor.", [(1, 2.0), (None, 3.0)], []),
        ("Add bias, None or [n], to x times factor.", [(1, 2.0)], ["bias", "factor"]),
        ("Add bias, [n], to x. factor is always 2.", [(1, 2.0)], []),
        ("Add bias, [n], to x. factor is 2.0 and x is large.", [(1, 2.0)], []),
        ("Add bias, [n], to x times factor, which is ignored where None.", [(1, 2.0)], []),
        ("Add bias, [n], to x times factor. None stays.", [(1, 2.0)], ["factor"]),
    ],
)
def test_a_statement_says_what_is_always_the_same_or_it_is_drawn(
    statement: str, values: list[tuple[object, float]], lacks: list[str]
) -> None:
    problem = replace(GOOD.problem, statement=statement)
    module = replace(GOOD, problem=problem, reference=drawn_reference)
    x = torch.ones(2)
    trials = [{"x": x, "bias": bias and x, "factor": factor} for bias, factor in values]
    found = statement_is_drawn(module, lambda world_size: trials)
    assert [complaint.partition(" ")[0] for complaint in found] == lacks


def test_a_group_that_may_be_none_is_none_or_the_world_by_turns() -> None:
    module = problems.load(problems.find("87"))
    trials = correctness_trials(module.problem, "tiny", "hardened", 6, b"groups")
    given = [inputs_of(module, spec)["group"] for spec in trials]
    assert given.count(None) == 3
    assert [one for one in given if one is not None] == 3 * [GroupRef(axis="world")]
    assert inputs_of(module, trials[0], "upstream")["group"] is None
    sharded = problems.load(problems.find("22"))
    assert inputs_of(sharded, trials[0], world_size=2)["ep_group"] is None  # which skips a sum
