"""What holds for every problem: the rules of `python -m problems check`, one by one."""

from __future__ import annotations

import pytest

import problems
from problems.rank_rules import RANK_RULES, screen_finds_nothing
from problems.ranks import RankPool
from problems.rules import RULES

every_problem = pytest.mark.parametrize("name", problems.names())


@every_problem
@pytest.mark.parametrize("rule", RULES)
def test_a_problem_keeps_the_rule(name: str, rule: str) -> None:
    assert RULES[rule](problems.load(name)) == []


@every_problem
def test_a_problem_keeps_the_rules_on_two_ranks(name: str, two_ranks: RankPool) -> None:
    assert [fault for rule in RANK_RULES for fault in rule(two_ranks, name)] == []


@every_problem
def test_a_problem_keeps_the_rules_on_four_ranks(name: str, four_ranks: RankPool) -> None:
    """All but the screening, which costs most and is done by the audit on four ranks."""
    rules = [rule for rule in RANK_RULES if rule is not screen_finds_nothing]
    assert [fault for rule in rules for fault in rule(four_ranks, name)] == []
