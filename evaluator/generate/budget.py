"""Keeps what a run may spend: whatever a call may cost is set aside before it is made."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from evaluator.generate.exchange import Ask, Usage

PER_PRICE = 1e6
WAIT_S = 1.0


@dataclass(frozen=True, kw_only=True)
class Price:
    """Holds USD per million tokens; `date` says since when they are known, or where from."""

    input: float
    cached: float
    output: float
    date: str

    def usd(self, usage: Usage) -> float:
        """Return what so many tokens cost."""
        fresh = usage.input - usage.cached
        cost = fresh * self.input + usage.cached * self.cached + usage.output * self.output
        return cost / PER_PRICE

    def most_usd(self, usage: Usage) -> float:
        """Return what they cost at most, however many are cached."""
        dearest = max(self.input, self.cached)
        return (usage.input * dearest + usage.output * self.output) / PER_PRICE


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Holds the most that a run may spend; None is no limit."""

    usd: float | None = None
    tokens: int | None = None
    hours: float | None = None


@dataclass(frozen=True, kw_only=True)
class Spend:
    """Holds an amount: of money (0 where no price is known) and of tokens."""

    usd: float = 0.0
    tokens: int = 0

    def __add__(self, other: Spend) -> Spend:
        return Spend(usd=self.usd + other.usd, tokens=self.tokens + other.tokens)


class OutOfBudget(Exception):
    """Says that a call might pass a budget: `budget_usd`, `budget_tokens`, `budget_hours`, or
    `interrupted` where the run is to end."""


class Purse:
    """Holds what is spent and set aside, for attempts in several threads."""

    def __init__(
        self,
        budget: Budget,
        price: Price | None,
        *,
        spent: Spend | None = None,
        used_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.budget, self.price, self.spent = budget, price, spent or Spend()
        self._clock, self._began = clock, clock() - used_s
        self._aside: list[Spend] = []
        self._is_closed = False
        self._changed = threading.Condition()

    def reserve(self, ask: Ask) -> Spend:
        """Set aside the most that an ask can cost, and return it. Waits where what others set aside
        is in the way. Raises OutOfBudget."""
        usage = Usage(input=ask.most_input_tokens, output=ask.sampling.max_output_tokens)
        most = Spend(usd=self.price.most_usd(usage) if self.price else 0.0, tokens=usage.tokens)
        with self._changed:
            while (lacking := self._lacking(most)) and self._aside and not self.over:
                self._changed.wait(WAIT_S)
            self.check()
            if lacking:
                raise OutOfBudget(lacking)
            self._aside.append(most)
        return most

    def settle(self, most: Spend, actual: Spend) -> None:
        """Put back what was set aside, less what was spent of it."""
        with self._changed:
            self._aside.remove(most)
            self.spent += actual
            self._changed.notify_all()

    def cost(self, usage: Usage) -> Spend:
        """Return what tokens cost."""
        return Spend(usd=self.price.usd(usage) if self.price else 0.0, tokens=usage.tokens)

    @property
    def left_s(self) -> float | None:
        """Return the time that is left; None where it has no limit."""
        if self.budget.hours is None:
            return None
        return self.budget.hours * 3600 - (self._clock() - self._began)

    @property
    def over(self) -> str | None:
        """Return why the run is over, whatever is left to spend; None where it is not."""
        if self._is_closed:
            return "interrupted"
        return "budget_hours" if self.left_s is not None and self.left_s <= 0 else None

    def check(self) -> None:
        """Raise OutOfBudget where the run is over."""
        if self.over:
            raise OutOfBudget(self.over)

    def close(self) -> None:
        """End the run: nobody may spend any more."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _lacking(self, most: Spend) -> str | None:
        taken = sum(self._aside, self.spent) + most
        if self.budget.usd is not None and taken.usd > self.budget.usd:
            return "budget_usd"
        if self.budget.tokens is not None and taken.tokens > self.budget.tokens:
            return "budget_tokens"
        return None
