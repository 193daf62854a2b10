"""The rule that a model is told is the rule that judges."""

from __future__ import annotations

import copy
import re
from dataclasses import asdict
from typing import Any

import pytest

import problems
from problems.catalogue import stored, told
from problems.limits import PATH, TERMS, Compared, compared, limits_of
from problems.prompt import prompt
from problems.running.ranks import RankPool
from problems.spec import OUTLIERS
from tests.problems.limit_words import Said, left_out
from tests.problems.rank_tasks import untold_with_an_empty_table

every_problem = pytest.mark.parametrize("name", problems.names())


def in_prompt(problem: dict[str, Any], dtype: str) -> Said:
    """Return the items of a prompt's bullet about limits: names of outputs, and what it says."""
    text = prompt(
        problem,
        backend="cuda",
        hardware_text="GPUs",
        world_size=problem["world_sizes"][-1],
        dtype=dtype,
        size="standard",
    )
    start = f"exact answer, in {dtype}.\n"
    bullet = re.sub(r"\s+", " ", text.partition(start)[2].partition("\n* ")[0])
    # A minus sign is not the start of an item.
    terms, *items = re.split(r" - (?=[\w, ]+: )", bullet)
    assert terms.strip() == TERMS
    return [(item.partition(": ")[0].split(", "), item.partition(": ")[2]) for item in items]


@every_problem
def test_the_catalogue_has_every_limit_that_judges(name: str) -> None:
    """Of each output and changed argument in each dtype: what the judge's comparison reads."""
    problem, entry = problems.load(name).problem, told(problems.load(name))
    for dtype in problem.tolerances:
        for output in (*problem.outputs, *problem.mutates):
            judging = asdict(problem.tolerance("hardened", dtype, output))
            assert judging.pop("absolute") is False
            kept = entry["output_tolerances"].get(output, entry["tolerances"])[dtype]
            assert kept == judging
            assert kept["outliers"] == OUTLIERS.get(dtype, 0)


@every_problem
def test_a_prompt_has_every_limit_of_the_catalogue(name: str) -> None:
    problem = told(problems.load(name))
    for dtype in problem["tolerances"]:
        assert left_out(problem, dtype, in_prompt(problem, dtype)) == []


@pytest.mark.parametrize("part", ["atol", "rtol", "rms", "outliers"])
def test_a_limit_that_a_prompt_lacks_is_found(part: str) -> None:
    """In `zero1_optimizer_shard`, whose weights have limits of their own."""
    problem = told(problems.load(problems.find("zero1_optimizer_shard")))
    said = in_prompt(problem, "bfloat16")
    changed = copy.deepcopy(problem)
    changed["output_tolerances"]["W2"]["bfloat16"][part] = 7
    assert [one.partition(":")[0] for one in left_out(changed, "bfloat16", said)] == [
        "W2 in bfloat16"
    ]


def test_exact_whole_and_free_outputs_and_ties_have_words() -> None:
    entries = {one["number"]: one for one in stored()["problems"]}

    def words(number: int, output: str, dtype: str = "bfloat16") -> list[str]:
        return [one.words for one in limits_of(entries[number], dtype) if output in one.outputs]

    assert words(2, "stack") == ["x must equal ref exactly."]
    assert words(79, "labels")[0] == "x must equal ref exactly."
    assert "twice the bound of similarities" in words(79, "labels")[1]
    assert "at most 8" in words(79, "similarities")[0]
    assert "outliers" not in str(words(79, "similarities", "float16"))
    assert words(73, "vocab_parallel_logits") == [
        "not compared: it may hold anything after the call."
    ]
    assert "positive wins" in words(69, "ranking")[1]
    assert words(21, "total_norm")[0].startswith(
        "abs(x - ref) <= bound, where bound is 2e-05 * rms(ref) + 2e-05 * abs(ref)."
    )


def test_the_table_knows_its_problems() -> None:
    slugs = {problems.load(name).slug for name in problems.names()}
    assert set(re.findall(r"^\[(\w+)", PATH.read_text(), re.MULTILINE)) <= slugs
    assert compared("allreduce") == Compared()


def test_what_the_table_lacks_is_found(two_ranks: RankPool) -> None:
    """By the types of an answer and by what `settle` replaces."""
    lacks = two_ranks.run(untold_with_an_empty_table, problems.find("61"))[0]
    assert [one.removeprefix("compared.toml lacks ") for one in lacks] == [
        *("notes conics", "notes radii", "whole cameras", "whole gaussians", "whole radii")
    ]
    (free,) = two_ranks.run(untold_with_an_empty_table, problems.find("73"))[0]
    assert free == "compared.toml lacks free vocab_parallel_logits"
