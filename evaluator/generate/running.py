"""Makes the attempts of a run, several at a time, or goes on with them."""

from __future__ import annotations

import contextlib
import fcntl
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, TextIO

from evaluator.evaluate import Cancelled
from evaluator.generate.agent import try_with_tools
from evaluator.generate.asking import DETAIL_CHARS, Asker, EndpointDown, spent_in
from evaluator.generate.attempt_loop import Course
from evaluator.generate.budget import OutOfBudget, Purse, Spend
from evaluator.generate.exchange import Endpoint, Misconfigured, Rejected
from evaluator.generate.journal import Diverged, Event, Journal, appender, read_events
from evaluator.generate.judging import KernelJudge
from evaluator.generate.plan import AGENTIC, Plan, RunFiles, Target, attempts, load_prompt, task_of
from evaluator.generate.progress import Board, Outcome, outcome_of
from evaluator.generate.shell import Shell
from evaluator.generate.single_answer import try_once
from evaluator.messages.faults import EvaluatorError
from evaluator.messages.text import plain_text


def play(course: Course, plan: Plan) -> str:
    """Try an attempt by its harness and return how it ended."""
    return try_with_tools(course) if plan.harness == AGENTIC else try_once(course)


@dataclass(frozen=True, kw_only=True)
class Means:
    """Holds what a run works with; `judge` is None where nothing is judged, `shell` where no agent
    may run commands."""

    endpoint: Endpoint
    judge: KernelJudge | None
    scrub: Callable[[Any], Any]
    asker_options: dict[str, Any]
    shell: Shell | None = None


def make(place: RunFiles, plan: Plan, means: Means, purse: Purse, out: TextIO) -> list[Outcome]:
    """Try every attempt that has not ended, and return how all stand. Raises Misconfigured and
    Diverged, where nothing of the run can go on; what is recorded stays."""
    every = list(attempts(plan))
    board = Board(plan=plan, total=len(every), out=out, spent=lambda: purse.spent)
    asker = Asker(
        endpoint=means.endpoint, purse=purse, timeout_s=plan.timeout_s, **means.asker_options
    )

    def one(target: Target, attempt: int) -> None:
        events = read_events(place.events(target, attempt))
        is_earlier = bool(events) and events[-1]["kind"] == "ended"
        if not is_earlier:
            try:
                events = _go_on(place, plan, (target, attempt), means, asker)
            except (Misconfigured, Diverged):
                purse.close()
                raise
        board.add(outcome_of(events), is_earlier=is_earlier)

    with _shown(board), ThreadPoolExecutor(plan.parallel, thread_name_prefix="attempt") as pool:
        try:
            futures = [pool.submit(one, *which) for which in every]
            wait(futures, return_when=FIRST_EXCEPTION)
            for future in futures:
                if future.done():
                    future.result()
        finally:
            purse.close()  # after all have ended it does nothing
    return board.outcomes


def _go_on(
    place: RunFiles, plan: Plan, which: tuple[Target, int], means: Means, asker: Asker
) -> list[Event]:
    """Try one attempt, from where its events end, and return all of them."""
    target, attempt = which
    path = place.events(target, attempt)
    journal = Journal(read_events(path), appender(path, means.scrub))
    task = task_of(plan, target, attempt, load_prompt(place, target))
    course = Course(task=task, journal=journal, asker=asker, judge=means.judge, shell=means.shell)
    try:
        asker.purse.check()
        journal.append({"kind": "ended", "reason": play(course, plan)})
    except OutOfBudget as stop:
        _stop(journal, str(stop))
    except Cancelled:
        _stop(journal, asker.purse.over or "interrupted")
    except EndpointDown as down:
        _stop(journal, "endpoint_down", str(down))
    except Rejected as rejected:
        if asker.purse.spent == Spend():  # it takes no ask of this run at all
            raise Misconfigured(str(rejected)) from None
        _stop(journal, "rejected", plain_text(str(rejected), DETAIL_CHARS))
    except EvaluatorError as fault:
        _stop(journal, "judge_failed", plain_text(str(fault), DETAIL_CHARS))
    return journal.events


def _stop(journal: Journal, reason: str, detail: str = "") -> None:
    """Record what an attempt waits for: no end, as `resume` goes on with it. One that has not
    begun needs no record."""
    if journal.events:
        journal.append({"kind": "stopped", "reason": reason, "detail": detail})


@contextlib.contextmanager
def _shown(board: Board) -> Iterator[None]:
    is_over = threading.Event()
    shower = threading.Thread(target=board.show_until, args=(is_over,), daemon=True)
    shower.start()
    try:
        yield
    finally:
        is_over.set()
        shower.join()


@contextlib.contextmanager
def session(place: RunFiles) -> Iterator[None]:
    """Keep every other process off the run meanwhile. Raises ValueError where one is at work."""
    place.folder.mkdir(parents=True, exist_ok=True)
    with (place.folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"another process is at work in {place.folder}") from None
        yield


def begin(place: RunFiles) -> None:
    """Record that the run is begun, or gone on with, now."""
    with place.sessions.open("a") as file:
        file.write(json.dumps({"began": time.time()}) + "\n")


def purse_of(place: RunFiles, plan: Plan) -> Purse:
    """Return what is left of the run's budget, from what its events say."""
    every = [read_events(place.events(*which)) for which in attempts(plan)]
    spent = sum((spent_in(events) for events in every), Spend())
    used_s = _used_s(place, [event["at"] for events in every for event in events])
    return Purse(plan.budget, plan.price, spent=spent, used_s=used_s)


def _used_s(place: RunFiles, times: list[float]) -> float:
    """Return how long earlier sessions were at work: each until the last event of it."""
    if not place.sessions.exists():
        return 0.0
    begun: list[float] = [
        json.loads(line)["began"] for line in place.sessions.read_text().splitlines()
    ]
    ends = [*begun[1:], float("inf")]
    return sum(
        max([at for at in times if start <= at < end], default=start) - start
        for start, end in zip(begun, ends, strict=True)
    )
