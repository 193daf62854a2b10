"""Asks an endpoint within a budget, again where that may help, and records each try."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from evaluator.generate.budget import Purse, Spend
from evaluator.generate.exchange import (
    Ask,
    Endpoint,
    Failed,
    Misconfigured,
    Rejected,
    Reply,
    Unanswered,
)
from evaluator.generate.journal import Event, Journal
from evaluator.messages.codec import decode, encode
from evaluator.messages.text import plain_text

FIRST_WAIT_S, MOST_WAIT_S = 1.0, 120.0
DETAIL_CHARS = 300


class EndpointDown(Exception):
    """Says that every try of an ask went wrong: the attempt waits for `resume`."""


@dataclass(frozen=True, kw_only=True)
class Asker:
    """Holds what asks need besides themselves: `wait` sleeps so many seconds."""

    endpoint: Endpoint
    purse: Purse
    tries: int = 6
    timeout_s: float = 1800.0
    wait: Callable[[float], None] = time.sleep

    def event(self, ask: Ask, journal: Journal) -> Event:
        """Return the event that answers an ask. Raises EndpointDown, OutOfBudget, Rejected,
        Misconfigured."""
        for number in range(self.tries):
            most = self.purse.reserve(ask)
            spent = most  # what a crash or an unknown fault may have cost
            try:
                journal.append({"kind": "asked", "key": ask.digest, "aside": encode(most)})
                event, spent = self._try(ask, most)
            except Unanswered as fault:
                spent = most if fault.may_cost else Spend()
                detail = plain_text(str(fault), DETAIL_CHARS)
                journal.append({"kind": "unanswered", "detail": detail, "spent": encode(spent)})
                if number + 1 == self.tries:
                    raise EndpointDown(detail) from None
                pause_s = fault.retry_after_s
            except (Misconfigured, Rejected):
                spent = Spend()
                journal.append({"kind": "unanswered", "spent": encode(spent)})
                raise
            else:
                return event
            finally:
                self.purse.settle(most, spent)
            self._pause(_backoff_s(number) if pause_s is None else pause_s)
        raise AssertionError("the last try returns or raises")

    def _try(self, ask: Ask, most: Spend) -> tuple[Event, Spend]:
        left_s = self.purse.left_s
        timeout_s = self.timeout_s if left_s is None else max(0.01, min(self.timeout_s, left_s))
        try:
            reply = self.endpoint.complete(ask, timeout_s)
        except Failed as failed:
            spent = most if failed.why == "too_long" else Spend()
            detail = plain_text(str(failed), DETAIL_CHARS)
            event = {"kind": "failed", "why": failed.why, "detail": detail}
        else:
            spent = self.purse.cost(reply.usage) if reply.usage else most
            event = {"kind": "replied", "reply": encode(reply)}
        return {**event, "spent": encode(spent)}, spent

    def _pause(self, seconds: float) -> None:
        """Wait, in parts, so that an end of the run is seen."""
        left_s = min(seconds, MOST_WAIT_S)
        while left_s > 0:
            self.purse.check()
            self.wait(min(left_s, 1.0))
            left_s -= 1.0


def _backoff_s(number: int) -> float:
    """Return a wait that doubles from try to try, half of it by chance."""
    longest = min(MOST_WAIT_S, FIRST_WAIT_S * 2.0**number)
    return longest * (0.5 + random.random() / 2)


def reply_of(event: Event) -> Reply | None:
    """Return the reply of an event; None where it tells of a failure."""
    return decode(Reply, event["reply"]) if event["kind"] == "replied" else None


def spent_in(events: list[Event]) -> Spend:
    """Return what the asks of an attempt have cost; one without an end counts as all that was set
    aside."""
    total, aside = Spend(), Spend()
    for event in events:
        if event["kind"] == "asked":
            total, aside = total + aside, decode(Spend, event["aside"])
        elif "spent" in event:
            total, aside = total + decode(Spend, event["spent"]), Spend()
    return total + aside
