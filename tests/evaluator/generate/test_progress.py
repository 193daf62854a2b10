"""What is shown while a run is made, and at its end."""

from __future__ import annotations

import io
import threading

from evaluator.generate.budget import Spend
from evaluator.generate.journal import Event
from evaluator.generate.plan import Plan
from evaluator.generate.progress import Board, Outcome, outcome_of, summary
from evaluator.messages.codec import encode
from evaluator.messages.feedback import Feedback
from tests.evaluator.generate.scripted import plan

PLAN = plan("--problems", "1,2,3,13", "--price", "1,1,1")


def _outcome(reason: str = "answered", *, right: bool = False, fast: bool = False) -> Outcome:
    return Outcome(reason=reason, is_ended=True, right=right, fast=fast, spent=Spend())


def _board(own: Plan, out: io.StringIO) -> Board:
    return Board(plan=own, total=4, out=out, spent=lambda: Spend(usd=1.5, tokens=12345))


def test_the_line_counts_done_right_fast_spent_and_the_time_left() -> None:
    board = _board(PLAN, io.StringIO())
    board.add(_outcome(right=True, fast=True))
    board.add(_outcome(right=True))
    line = board.line()
    assert line.startswith(
        "2/4 attempts, 2 right, 1 faster than the reference, 1.50 USD, 12,345 tok"
    )
    assert line.endswith(" left")


def test_what_is_not_timed_is_not_called_slow() -> None:
    own = plan("--backend", "triton")  # on processors
    board = _board(own, io.StringIO())
    board.add(_outcome(right=True))
    assert board.line().startswith("1/4 attempts, 1 right, 12,345 tokens")
    assert "faster" not in summary(own, board.outcomes, Spend())


def test_what_an_earlier_session_did_says_nothing_of_the_time_left() -> None:
    board = _board(PLAN, io.StringIO())
    board.add(_outcome(), is_earlier=True)
    assert "left" not in board.line()


class Terminal(io.StringIO):
    """A terminal that remembers all."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_one_line_that_changes_and_a_file_a_line_a_change() -> None:
    for out in (Terminal(), io.StringIO()):
        board, is_over = _board(PLAN, out), threading.Event()
        shower = threading.Thread(target=board.show_until, args=(is_over,))
        shower.start()
        is_over.wait(1.3)
        is_over.set()
        shower.join()
        shown = out.getvalue()
        assert "0/4 attempts" in shown
        if out.isatty():
            assert "\n" not in shown
        else:
            assert "\x1b" not in shown
            assert shown.count("\n") == 1


def test_an_attempt_is_right_if_some_step_is() -> None:
    def judged(verdict: str, low: float | None) -> Event:
        speed = None if low is None else low + 0.1
        found = Feedback(verdict=verdict, text="", profile="", speedup=speed, speedup_low=low)
        return {"kind": "judged", "feedback": encode(found)}

    wrong, slow, fast = judged("timeout", None), judged("ok", 0.9), judged("ok", 1.1)
    assert not outcome_of([wrong]).right
    assert outcome_of([slow, wrong]).right
    assert not outcome_of([slow, wrong]).fast
    assert outcome_of([fast, wrong]).fast
    # So much faster than light that somebody has to look: neither.
    assert not outcome_of([judged("faster_than_light", 9.0)]).fast


def test_the_summary_counts_every_reason() -> None:
    waiting = Outcome(reason="budget_usd", is_ended=False, right=False, fast=False, spent=Spend())
    outcomes = [_outcome(), _outcome("no_answer"), _outcome("no_answer"), waiting]
    text = summary(PLAN, outcomes, Spend(usd=2.0, tokens=10))
    for part in (
        "3 of 4 attempts have ended",
        "2 no_answer",
        "1 budget_usd",
        "2.00 USD, 10 tokens",
    ):
        assert part in text
