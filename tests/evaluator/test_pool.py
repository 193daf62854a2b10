"""What serves one run after another serves the next as well, whatever a submission did."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import problems
from evaluator import EvaluatorError, Isolation, Job, Verdict
from evaluator.evaluate import evaluate
from evaluator.host.processes import tree
from evaluator.judge import pool
from evaluator.judge.pool import MOST_RUNS, WorkerPool
from evaluator.judge.prefork import PreforkServer
from evaluator.messages.faults import Fault
from evaluator.messages.job import Device, Placement
from evaluator.sandbox import sandbox
from tests.evaluator import tuned_judge
from tests.evaluator.host_traces import is_running
from tests.evaluator.kernel_files import named, reference_source

TUNED = str(Path(tuned_judge.__file__))
JOB = Job(problem="allreduce", source="def solution(x): return x")
GONE_WITHIN_S = 10.0
# Of one judge's processes, which are for the limits of all of them.
HOSTILE = (
    ("segfault", "kills_everything", "late_thread_into_slab"),
    pytest.param(("deadlock", "stops_itself"), marks=pytest.mark.similar),
)


@pytest.fixture(scope="module")
def prefork() -> Iterator[PreforkServer]:
    with PreforkServer(warm=True, program=(TUNED, "hurried")) as own:
        yield own


def _reference(problem: str) -> Job:
    return Job(problem=problem, source=reference_source(problems.find(problem)))


def _below(prefork: PreforkServer) -> set[int]:
    """The kept judge and what serves it."""
    assert prefork._kept is not None
    return set(tree(prefork._kept.pid))


def test_the_same_processes_serve_run_after_run(prefork: PreforkServer) -> None:
    served = set()
    for problem in ("allreduce", "clip_grad_norm_ep", "allreduce"):
        report = evaluate(_reference(problem), prefork=prefork)
        assert report.verdict is Verdict.OK, report.message
        served.add(frozenset(_below(prefork)))
        assert report.panel_s["prepare"] > 0
    assert len(served) == 1


def test_where_cores_are_many_the_reference_is_as_new_as_the_submission() -> None:
    """And nothing that gets ready for the next run works while one is timed."""
    with PreforkServer(warm=True, program=(TUNED, "spacious")) as prefork:
        served = []
        for problem in ("allreduce", "broadcast"):  # or the first reference serves the second run
            assert evaluate(_reference(problem), prefork=prefork).verdict is Verdict.OK
            served.append(_below(prefork))
        kept = set.intersection(*served)
        assert len(kept) == 1 + JOB.world_size
        assert not any(map(_is_sandbox, kept))


@pytest.mark.parametrize("names", HOSTILE)
def test_nothing_of_a_hostile_run_is_there_in_the_next(
    names: tuple[str, ...], prefork: PreforkServer
) -> None:
    limits = named("misbehaving", names[0]).limits
    honest = replace(_reference("allreduce"), limits=limits)
    assert evaluate(honest, prefork=prefork).verdict is Verdict.OK
    for hostile in (named("misbehaving", name) for name in names):
        before = _below(prefork)
        assert hostile.limits == limits
        assert evaluate(hostile.job, prefork=prefork).verdict in hostile.verdicts, hostile.path
        assert _below(prefork) <= before, hostile.path
    assert evaluate(honest, prefork=prefork).verdict is Verdict.OK


def test_a_reference_uses_no_slab_of_a_run_that_ended_before_it_did() -> None:
    with PreforkServer(warm=True, program=(TUNED, "abandoned")) as prefork:
        assert evaluate(_reference("allreduce"), prefork=prefork).verdict is Verdict.RUNTIME_ERROR
        before = _below(prefork)
        assert evaluate(_reference("allreduce"), prefork=prefork).verdict is Verdict.OK
        assert _below(prefork) == before  # or it has failed once, and was judged in new ones


def test_without_bubblewrap_neither_side_meets_the_other(
    prefork: PreforkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PKB_BWRAP", raising=False)
    monkeypatch.setenv("PATH", "")
    for _ in range(2):
        report = evaluate(_reference("allreduce"), prefork=prefork)
        assert report.verdict is Verdict.OK, report.message
        assert report.isolation is Isolation.NONE


def test_in_a_lull_the_next_submission_gets_a_sandbox_that_has_imported_torch() -> None:
    with PreforkServer(warm=True, program=(TUNED, "unhurried")) as prefork:
        assert evaluate(JOB, prefork=prefork).verdict is Verdict.OUTPUT_MISMATCH
        deadline, reference = time.monotonic() + GONE_WITHIN_S, _with_torch(prefork)
        while not (ready := _with_torch(prefork) - reference) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert ready
        for pid in ready:
            assert evaluate(JOB, prefork=prefork).verdict is Verdict.OUTPUT_MISMATCH
            assert not is_running(pid)


def test_where_nothing_is_timed_the_next_sandbox_is_there_before_the_run_ends() -> None:
    """Without a lull: the judge is asked again at once."""
    job = replace(_reference("allreduce"), placement=Placement.SHARED)
    with PreforkServer(warm=True, program=(TUNED, "hurried")) as prefork:
        assert evaluate(job, prefork=prefork).verdict is Verdict.OK
        ready = {pid for pid in _below(prefork) if _is_sandbox(pid)}
        assert evaluate(job, prefork=prefork).verdict is Verdict.OK
        assert not all(map(is_running, ready))  # the reference's stays, the submission's is used


@pytest.mark.similar  # `kills_everything` leaves nobody alive, too
def test_who_has_died_meanwhile_is_replaced(prefork: PreforkServer) -> None:
    job = _reference("allreduce")
    assert evaluate(job, prefork=prefork).verdict is Verdict.OK
    assert prefork._kept is not None
    inside = [pid for pid in _below(prefork) if _is_sandbox(pid)]
    assert inside
    for pid in inside:
        os.kill(pid, signal.SIGKILL)
    time.sleep(0.2)
    assert evaluate(job, prefork=prefork).verdict is Verdict.OK


def test_who_waits_for_long_is_let_go() -> None:
    with PreforkServer(warm=True, program=(TUNED, "impatient")) as prefork:
        for _ in range(2):
            assert evaluate(JOB, prefork=prefork).verdict is Verdict.OUTPUT_MISMATCH
            assert prefork._kept is not None
            judge, deadline = prefork._kept.pid, time.monotonic() + GONE_WITHIN_S
            while len(tree(judge)) > 1 and time.monotonic() < deadline:
                time.sleep(0.05)
            assert set(tree(judge)) == {judge}
            assert is_running(judge)


class WaitingPauser(SimpleNamespace):
    """Stops nobody, or fails to; its twin alone may be asked to."""

    def anew(self) -> SimpleNamespace:
        return SimpleNamespace(stopped=lambda: self.stop)


def test_a_sandbox_that_does_not_stop_is_our_error_and_what_the_block_raises_stays() -> None:
    def pool_of(stop: object, *, is_alive: bool = True) -> WorkerPool:
        own: Any = SimpleNamespace(cores=None)
        sandbox = SimpleNamespace(is_alive=is_alive, pauser=WaitingPauser(stop=stop))
        waiting: Any = {"submission": SimpleNamespace(sandbox=sandbox)}
        return WorkerPool(job=JOB, host=own, reference=own, oracle=own, waiting=waiting)

    fault = Fault(Verdict.RESOURCE_LIMIT, "pause", "did not stop")
    with (
        pytest.raises(EvaluatorError, match="next run: did not stop"),
        pool_of(raising(fault)).quiet(),
    ):
        pytest.fail("it runs on")
    with pytest.raises(Fault, match="did not stop"), pool_of(nullcontext()).quiet():
        raise fault
    with pool_of(raising(fault), is_alive=False).quiet():
        pass  # one that has died is replaced when it is needed


@contextmanager
def raising(fault: Fault) -> Iterator[None]:
    raise fault
    yield


class FakePanel(SimpleNamespace):
    def end(self) -> None:
        if self.fails:
            raise EvaluatorError("lost")


@pytest.mark.parametrize(
    ("state", "is_free"),
    [
        ({}, True),
        ({"panel_is_idle": False}, False),
        ({"reference_is_idle": False}, False),
        ({"fails": True}, False),
        ({"runs": MOST_RUNS}, False),
    ],
)
def test_only_who_is_done_with_a_run_gets_another(state: dict[str, Any], is_free: bool) -> None:
    given: Any = SimpleNamespace(is_idle=state.get("reference_is_idle", True))
    oracle: Any = FakePanel(is_idle=state.get("panel_is_idle", True), fails="fails" in state)
    host: Any = SimpleNamespace(cores=None)
    own = WorkerPool(job=JOB, host=host, reference=given, oracle=oracle)
    own.runs, own.is_free = state.get("runs", 1), False
    own.release()
    assert own.fits(JOB) is is_free
    assert not own.fits(replace(JOB, world_size=4))


def test_sandboxes_for_kernels_on_gpus_import_ahead_what_a_first_call_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[list[str]] = []
    host: Any = SimpleNamespace(
        cores=None, limits_of=lambda job: None, settings={}, device_files=()
    )
    monkeypatch.setattr(sandbox, "launch", lambda arguments, **how: asked.append(arguments[3:]))
    for device, side in product((Device.CUDA, Device.CPU), (pool.SUBMISSION, pool.REFERENCE)):
        pool._launch(side, replace(JOB, device=device), host)
    assert asked == [["early", "for-kernels"], ["early"], ["early"], ["early"]]


def test_what_a_first_call_needs_is_there() -> None:
    code = "import sys; from evaluator.rank import launcher; launcher._import_for_kernels()"
    code += "; print('sympy' in sys.modules, 'triton.runtime.cache' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["True", "True"]


def _with_torch(prefork: PreforkServer) -> set[int]:
    """Those in sandboxes that have imported torch."""
    maps = {
        pid: Path(f"/proc/{pid}/maps").read_text() for pid in filter(_is_sandbox, _below(prefork))
    }
    return {pid for pid, text in maps.items() if "libtorch" in text}


def _is_sandbox(pid: int) -> bool:
    return "evaluator.rank.launcher" in Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
