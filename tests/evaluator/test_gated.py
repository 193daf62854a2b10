"""Kernels that attack sealed inputs, the gate and commitments, judged on processors as on GPUs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evaluator.evaluate import evaluate
from evaluator.judge.prefork import PreforkServer
from evaluator.messages.report import Report, Verdict
from tests.evaluator import tuned_judge
from tests.evaluator.judging import judged_by
from tests.evaluator.kernel_files import KernelFile, all_in, named

SENDS_EARLY = named("gated", "sends_sealed_inputs")
HOSTILE = [kernel for kernel in all_in("gated") if kernel != SENDS_EARLY]
HOSTILE.append(named("misbehaving", "superbatch_of_singles"))
PASSES_WITHOUT = {
    "no_sealing": named("gated", "reads_before_the_gate"),
    "no_commitment_check": named("gated", "answers_while_the_next_is_timed"),
    "no_watch": SENDS_EARLY,
}


@pytest.fixture(scope="module")
def gated() -> Iterator[PreforkServer]:
    """A judge that keeps its processes, and the reference's times, for all kernels."""
    with PreforkServer(warm=True, program=(str(tuned_judge.__file__), "gated")) as own:
        yield own


def _parameters() -> list[object]:
    return [
        pytest.param(
            kernel,
            id=kernel.path.stem,
            marks=[pytest.mark.similar] if kernel.like is not None else [],
        )
        for kernel in HOSTILE
    ]


def test_an_honest_kernel_is_timed_behind_a_gate(gated: PreforkServer) -> None:
    report = evaluate(named("honest", "all_reduce").job, prefork=gated)
    assert report.verdict is Verdict.OK, report.message
    timing = report.timing
    assert timing is not None
    assert timing.empty_us > 0
    assert timing.ahead is not None
    for side in (timing.kernel, timing.baseline):
        assert side is not None
        assert side.call_us is not None
        assert side.series_us is not None


@pytest.mark.parametrize("kernel", _parameters())
def test_a_kernel_that_attacks_the_gate_gets_its_verdict(
    kernel: KernelFile, gated: PreforkServer
) -> None:
    report = evaluate(kernel.job, prefork=gated)
    assert not kernel.complaints(report), _said(report)


def test_a_kernel_that_sends_sealed_inputs_early_is_seen() -> None:
    with PreforkServer(warm=True, program=(str(tuned_judge.__file__), "watched")) as own:
        report = evaluate(SENDS_EARLY.job, prefork=own)
    assert not SENDS_EARLY.complaints(report), _said(report)


@pytest.mark.parametrize("mutation", PASSES_WITHOUT)
def test_without_it_a_wrong_kernel_is_accepted(mutation: str) -> None:
    report = judged_by(mutation, PASSES_WITHOUT[mutation].job)
    assert report.verdict is Verdict.OK, _said(report)


def _said(report: Report) -> str:
    return f"{report.verdict} {report.message} ({report.evidence})"
