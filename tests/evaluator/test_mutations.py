"""Every defence is needed: with one removed, a hostile kernel gets away that is caught with it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from evaluator.host.leftovers import remove_leftovers
from evaluator.messages.faults import EvaluatorError
from evaluator.messages.report import Report, Verdict
from tests.evaluator import host_traces
from tests.evaluator.judging import VARIED, judged_by
from tests.evaluator.kernel_files import named
from tests.evaluator.mutant_judge import MUTATIONS

ACCEPTED = {
    "no_poison": "writes_once",
    "no_fresh_inputs": "replay_by_pointer_after_warm_up",
    "no_timed_comparison": "stack_sniffer",
    "no_guard_bands": "scribbles_before_input",
    "no_input_comparison": "input_bit_flip",
    "only_rank_zero_compared": "rank_zero_only",
    "inputs_all_at_once": "superbatch_of_singles",
    "singles_compared_together": "works_in_the_last_single",
    "no_trials_after_timing": "odd_shapes_after_the_clock",
    "timed_calls_alike": "assumes_the_timed_root",
    "no_race_screen": "no_barrier_behind_the_read",
}
ESCAPED = {
    "no_seccomp": "reads_other_memory",
    "no_private_network": "raw_socket",
    "writable_proc": "writes_kernel_settings",
    "stops_first_threads": "reads_inputs_while_written",
}
# What is shown by others of these, too, each by a defence of its kind.
SHOWN_ALIKE = {
    *("no_guard_bands", "only_rank_zero_compared", "timed_calls_alike"),
    "writable_proc",
}
ELSEWHERE = {
    "no_multicast_guard": "test_multicast_guard.py",
    "no_sealing": "test_gated.py",
    "no_commitment_check": "test_gated.py",
    "no_watch": "test_gated.py",
    "references_always_agree": "test_baseline.py",
    "slower_reference_counts": "test_baseline.py",
}
STILL_RUNNING = (
    "vfork_waits_beside_spinning_threads",
    pytest.param("exits_beside_spinning_threads", marks=pytest.mark.similar),
    pytest.param("continues_spinning_helpers", marks=pytest.mark.similar),
)
OTHERS = {
    "no_seals": "truncates_slab",
    "no_log_cap": "stdout_flood",
    "no_kill": "daemon",
    "launcher_in_reach": "forged_end_by_a_truth_value",
    "notes_are_believed": "forged_end_by_a_truth_value",
    "names_are_text": "names_that_are_no_text",
    "errors_beside_are_ours": "uses_up_epoll_watches",
    "memory_of_the_dead_is_left": "files_in_flight_left_behind",
    "oracle_works_beside": "burns_while_answers_are_made",
}


def _marked(shown: Mapping[str, str]) -> list[object]:
    return [
        pytest.param(*pair, marks=[pytest.mark.similar] if pair[0] in SHOWN_ALIKE else [])
        for pair in shown.items()
    ]


def test_every_mutation_is_shown_to_matter() -> None:
    shown = ACCEPTED.keys() | ESCAPED.keys() | OTHERS.keys() | ELSEWHERE.keys()
    assert shown == MUTATIONS.keys()


@pytest.mark.parametrize(("mutation", "kernel"), _marked(ACCEPTED))
def test_without_it_a_wrong_kernel_is_accepted(mutation: str, kernel: str) -> None:
    assert Verdict.OK not in named("misbehaving", kernel).verdicts
    report = _mutant_report(mutation, kernel)
    assert report.verdict is Verdict.OK, report.message


@pytest.mark.parametrize(("mutation", "kernel"), _marked(ESCAPED))
def test_without_it_a_kernel_escapes(mutation: str, kernel: str) -> None:
    if mutation == "writable_proc" and os.getuid() != 0:
        pytest.skip("only a judge that runs as root lends its kernel settings")
    if mutation == "no_private_network" and len(socket.if_nameindex()) < 2:
        pytest.skip("this host has no network to reach")
    report = _mutant_report(mutation, kernel)
    assert "escaped: " in (report.evidence or ""), report.message


@pytest.mark.parametrize("kernel", STILL_RUNNING)
def test_without_all_threads_stopped_helpers_work_on(kernel: str) -> None:
    report = _mutant_report("stops_first_threads", kernel)
    assert "escaped: " in (report.evidence or ""), report.message


def test_without_seals_the_judge_dies() -> None:
    with pytest.raises(EvaluatorError, match="ended without a report"):
        _mutant_report("no_seals", OTHERS["no_seals"])


def test_a_note_that_is_no_end_is_a_verdict_even_where_ranks_reach_their_launcher() -> None:
    report = _mutant_report("launcher_in_reach", OTHERS["launcher_in_reach"])
    assert report.verdict is Verdict.RUNTIME_ERROR
    report = _mutant_report("launcher_in_reach", "forged_end_of_many_digits")
    assert report.verdict is Verdict.RUNTIME_ERROR


def test_a_note_that_is_believed_is_our_error() -> None:
    with pytest.raises(EvaluatorError, match="ended without a report"):
        _mutant_report("notes_are_believed", OTHERS["notes_are_believed"])
    report = _mutant_report("notes_are_believed", "forged_end_of_many_digits")
    assert len(report.cause or "") > 1000


def test_where_names_are_taken_for_text_one_that_is_none_is_our_error() -> None:
    with pytest.raises(EvaluatorError, match="UnicodeDecodeError"):
        _mutant_report("names_are_text", OTHERS["names_are_text"])


@pytest.mark.parametrize(
    "kernel",
    [
        "files_in_flight_left_behind",
        pytest.param("timers_and_shared_memory_left_behind", marks=pytest.mark.similar),
    ],
)
def test_without_a_wait_the_kernel_still_frees_memory_beside_the_reference(kernel: str) -> None:
    with pytest.raises(EvaluatorError, match="MiB of the dead are left"):
        _mutant_report("memory_of_the_dead_is_left", kernel)


def test_without_its_pauses_a_submission_is_at_work_beside_the_judge() -> None:
    with pytest.raises(EvaluatorError, match="works beside a submission"):
        _mutant_report("oracle_works_beside", OTHERS["oracle_works_beside"])


@pytest.mark.alone  # what it uses up is every run's of this user
def test_without_another_try_what_breaks_our_processes_is_our_error() -> None:
    with pytest.raises(EvaluatorError, match="died during"):
        _mutant_report("errors_beside_are_ours", OTHERS["errors_beside_are_ours"])


@pytest.mark.similar  # that there is a cap is tried among misbehaving kernels
def test_without_a_cap_a_flood_fills_the_report() -> None:
    report = _mutant_report("no_log_cap", OTHERS["no_log_cap"])
    assert report.logs == ()  # too long to be sent with the verdict


@pytest.mark.alone  # what it leaves behind for a while is found by every test beside it
def test_without_the_kill_a_daemon_outlives_its_run(tmp_path: Path) -> None:
    VARIED.start()  # which is not left behind: it serves the tests after this one
    with (
        _survivors_buried(),
        pytest.raises(AssertionError, match="processes left behind"),
        host_traces.nothing_left_behind(tmp_path),
    ):
        _mutant_report("no_kill", OTHERS["no_kill"])


def _mutant_report(mutation: str, kernel: str) -> Report:
    """The kernel's report by a judge without a defence; the rest of the evaluator is as always."""
    return judged_by(mutation, named("misbehaving", kernel).job)


@contextlib.contextmanager
def _survivors_buried() -> Iterator[None]:
    before = host_traces.descendants()
    try:
        yield
    finally:
        while survivors := host_traces.descendants() - before:
            for pid in survivors:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)
        remove_leftovers()
