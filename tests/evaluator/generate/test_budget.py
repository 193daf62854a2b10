"""Whatever a server does, and however many attempts run, a budget is never passed."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.generate.budget import Budget, OutOfBudget, Price, Purse, Spend
from evaluator.generate.exchange import Ask, Message, Reply, Sampling, Unanswered, Usage
from evaluator.generate.running import purse_of
from tests.evaluator.generate.scripted import FENCED, ScriptedModel, go_on, lay_out, plan, reply

PRICE = Price(input=1000.0, cached=100.0, output=4000.0, date="2026-11-25")
MOST_OUTPUT = 1000


def _ask(chars: int = 100) -> Ask:
    return Ask(
        model="m",
        messages=(Message(role="user", text="x" * chars),),
        sampling=Sampling(max_output_tokens=MOST_OUTPUT),
    )


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32), tokens=st.integers(0, 60_000), usd=st.floats(0, 100))
def test_spending_stays_within_the_budget_under_eight_attempts(
    seed: int, tokens: int, usd: float
) -> None:
    purse, chance = Purse(Budget(usd=usd, tokens=tokens), PRICE), random.Random(seed)
    seen: list[Spend] = []
    paid: list[Spend] = []

    def spend(number: int) -> None:
        ask = _ask(100 + number)
        try:
            most = purse.reserve(ask)
        except OutOfBudget:
            return
        own = random.Random(f"{seed} {number}")
        used = Usage(
            input=own.randint(0, ask.most_input_tokens), output=own.randint(0, MOST_OUTPUT)
        )
        actual = most if own.random() < 0.2 else purse.cost(used)
        purse.settle(most, actual)
        seen.append(purse.spent)
        paid.append(actual)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(spend, chance.sample(range(40), 40)))
    assert all(one.tokens <= tokens and one.usd <= usd + 1e-9 for one in seen)
    assert purse.spent.tokens == sum(one.tokens for one in paid) <= tokens
    assert purse.spent.usd == pytest.approx(sum(one.usd for one in paid))


def test_an_ask_waits_for_what_others_have_set_aside() -> None:
    ask = _ask()
    most_tokens = ask.most_input_tokens + MOST_OUTPUT
    purse = Purse(Budget(tokens=most_tokens + 10), None)
    first = purse.reserve(ask)
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(purse.reserve, ask)
        assert not second.done()
        purse.settle(first, Spend(tokens=5))
        assert second.result(timeout=10).tokens == most_tokens


def test_nobody_waits_for_what_will_never_be_there() -> None:
    with pytest.raises(OutOfBudget, match="budget_tokens"):
        Purse(Budget(tokens=10), None).reserve(_ask())
    with pytest.raises(OutOfBudget, match="budget_usd"):
        Purse(Budget(usd=0.001), PRICE).reserve(_ask())


def test_hours_count_over_sessions() -> None:
    now = [0.0]
    purse = Purse(Budget(hours=1.0), None, used_s=3000.0, clock=lambda: now[0])
    purse.check()
    now[0] = 601.0
    with pytest.raises(OutOfBudget, match="budget_hours"):
        purse.check()


def test_a_closed_purse_gives_nothing() -> None:
    purse = Purse(Budget(), None)
    purse.close()
    with pytest.raises(OutOfBudget, match="interrupted"):
        purse.reserve(_ask())


def _unsteady(ask: Ask) -> Reply:
    """A model that often fails, now and then after it has cost, and uses all that it may."""
    chance = random.random()
    if chance < 0.3:
        raise Unanswered("no", may_cost=chance < 0.1)
    most = Usage(input=ask.most_input_tokens, output=MOST_OUTPUT)
    return reply(FENCED, usage=None if chance > 0.9 else most)


def test_a_run_ends_within_its_budget_and_resume_with_a_larger_one_goes_on() -> None:
    with TemporaryDirectory() as folder:
        words = ("--judge", "none", "--problems", "1,2,3,4,5,6", "--parallel", "4")
        limit = ("--max-output-tokens", "1000", "--budget-tokens", "30000")
        own = plan(*words, *limit)
        place = lay_out(Path(folder), own)
        outcomes = go_on(place, own, ScriptedModel(script=_unsteady))
        assert purse_of(place, own).spent.tokens <= 30_000
        waiting = sum(not one.is_ended for one in outcomes)
        assert waiting >= 1
        richer = plan(*words, "--max-output-tokens", "1000")
        model = ScriptedModel(script=lambda ask: reply(FENCED))
        outcomes = go_on(place, richer, model)
        assert all(one.is_ended for one in outcomes)
        assert len(model.asked) == waiting
