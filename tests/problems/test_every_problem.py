"""What holds for every problem: the rules of `python -m problems check`, one by one."""

from __future__ import annotations

import pytest

import problems
from problems.audit.rank_rules import RANK_RULES, screen_finds_nothing
from problems.audit.rules import RULES
from problems.running.ranks import RankPool

every_problem = pytest.mark.parametrize("name", problems.names())
# Screening costs most. The audit did it for all, of the very code that is here (test_health.py).
SCREENED_AGAIN = sorted({name.partition(".")[0]: name for name in problems.names()}.values())
CHEAP_RULES = [rule for rule in RANK_RULES if rule is not screen_finds_nothing]


@every_problem
def test_a_problem_keeps_the_rules(name: str) -> None:
    module = problems.load(name)
    assert [(rule, fault) for rule, faults in RULES.items() for fault in faults(module)] == []


@every_problem
def test_a_problem_keeps_the_rules_on_two_ranks(name: str, two_ranks: RankPool) -> None:
    assert [fault for rule in CHEAP_RULES for fault in rule(two_ranks, name)] == []


@every_problem
def test_a_problem_keeps_the_rules_on_four_ranks(name: str, four_ranks: RankPool) -> None:
    assert [fault for rule in CHEAP_RULES for fault in rule(four_ranks, name)] == []


@pytest.mark.parametrize(
    "name",
    [
        *SCREENED_AGAIN[::2],
        *(pytest.param(name, marks=pytest.mark.similar) for name in SCREENED_AGAIN[1::2]),
    ],
)
def test_a_screening_repeated_finds_nothing_either(name: str, two_ranks: RankPool) -> None:
    assert screen_finds_nothing(two_ranks, name) == []
