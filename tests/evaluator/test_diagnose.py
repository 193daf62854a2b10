"""Logs of failed runs, recorded and written: the cause, its first line, the ranks that show it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.diagnosis.claim_reader import CAUSES, CLAIMABLE
from evaluator.diagnosis.diagnose import CLAIMS_OF_CODE, Diagnosis, refine, sentence, unblamed
from evaluator.diagnosis.log_patterns import AFTERMATH, CRASHES, ROOTS, last_failure
from evaluator.messages.faults import Fault
from evaluator.messages.report import Phase, RankLog, Verdict
from problems.running.staging import NO_CAPTURE
from tests.evaluator.diagnosis_files import Case, cases

CASES = cases()
EVERYTHING = tuple(
    RankLog(rank=rank, text="\n".join(log.text for case in CASES for log in case.logs))
    for rank in range(2)
)


def _refined(known: Diagnosis, logs: tuple[RankLog, ...], phase: Phase) -> Diagnosis:
    assert known.cause is not None
    return refine(known.verdict, known.cause, known.evidence, logs, phase, ranks=known.ranks)


def _logs(*texts: str) -> tuple[RankLog, ...]:
    return tuple(RankLog(rank=rank, text=text) for rank, text in enumerate(texts))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_recorded_failure_is_diagnosed(case: Case) -> None:
    assert _refined(case.known, case.logs, case.stage) == case.wanted


def test_the_recorded_failures_are_of_many_kinds() -> None:
    assert len({case.wanted.cause for case in CASES}) >= 15
    assert all(case.source and case.logs for case in CASES)


LEFT_ALONE = sorted(
    set(Verdict)
    - {Verdict.BUILD_ERROR, Verdict.IMPORT_ERROR, Verdict.RUNTIME_ERROR, Verdict.TIMEOUT}
)


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("verdict", LEFT_ALONE)
def test_what_the_judge_found_itself_is_left_alone(verdict: Verdict, phase: Phase) -> None:
    known = Diagnosis(verdict=verdict, cause="exception", evidence="e", ranks=(1,))
    assert _refined(known, EVERYTHING, phase) == known


@pytest.mark.parametrize("verdict", sorted(set(Verdict) - set(LEFT_ALONE)))
def test_no_log_takes_a_failure_off_a_kernel(verdict: Verdict) -> None:
    may_be = {verdict} if verdict is Verdict.TIMEOUT else CLAIMABLE
    for cause in (*CAUSES, "claim", "exit", "signal_9", "deadlock"):
        known = Diagnosis(verdict=verdict, cause=cause, evidence=None)
        assert {_refined(known, EVERYTHING, phase).verdict for phase in Phase} <= may_be


@pytest.mark.parametrize("verdict", Verdict)
def test_ranks_that_share_a_gpu_are_not_blamed_for_what_it_lacks(verdict: Verdict) -> None:
    for cause, is_lack in {"gpu_memory": True, "one_gpu": True, "illegal_access": False}.items():
        found = unblamed(Diagnosis(verdict=verdict, cause=cause, evidence="e", ranks=(1,)))
        is_spared = is_lack and verdict in (*CLAIMS_OF_CODE, Verdict.OOM)
        assert found.verdict is (Verdict.HOST_UNSUPPORTED if is_spared else verdict)
        assert (found.evidence, found.ranks) == ("e", (1,))


def test_a_collective_in_a_graph_is_what_one_gpu_lacks() -> None:
    log = _logs(_raised(f"RuntimeError: {NO_CAPTURE}"))
    found = _refined(Diagnosis(verdict=Verdict.RUNTIME_ERROR, cause="exception"), log, Phase.VERIFY)
    assert unblamed(found).verdict is Verdict.HOST_UNSUPPORTED
    fault = Fault(Verdict.RUNTIME_ERROR, "exception", "rank 0: RuntimeError")
    assert sentence(fault, unblamed(found), None).startswith("ranks that share a GPU may not have")


@given(st.lists(st.text(), max_size=4), st.sampled_from(["exit", "exception", "peer_lost", "nccl"]))
def test_any_text_is_survived(texts: list[str], cause: str) -> None:
    for verdict in (Verdict.RUNTIME_ERROR, Verdict.TIMEOUT):
        found = refine(verdict, cause, None, _logs(*texts), Phase.VERIFY)
        assert len(found.evidence or "") <= 600


def _raised(line: str) -> str:
    return (
        "Traceback (most recent call last):\n"
        '  File "/tmp/rank0/submission.py", line 9, in solution\n'
        f"    run(x)\n{line}\n"
    )


# As cudaGetErrorString words them; a GPU prints them, so none is recorded here.
CUDA_TEXTS = {
    "an illegal memory access was encountered": "illegal_access",
    "misaligned address": "misaligned_access",
    "an illegal instruction was encountered": "illegal_instruction",
    "device-side assert triggered": "device_assert",
    "unspecified launch failure": "launch_failure",
    "too many resources requested for launch": "launch_resources",
    "invalid configuration argument": "invalid_configuration",
    "too many blocks in cooperative launch": "invalid_configuration",
    "no kernel image is available for execution on the device": "no_kernel_image",
    "peer access is not supported between these two devices": "peer_access",
    "operation not permitted when stream is capturing": "stream_capture",
    "invalid device ordinal": "invalid_device",
    "invalid argument": "invalid_argument",
    "uncorrectable ECC error encountered": "gpu_hardware",
    "no CUDA-capable device is detected": "no_gpu",
}
PREFIXES = ("torch.AcceleratorError: CUDA error: ", "RuntimeError: Triton Error [CUDA]: ")


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize(("text", "cause"), CUDA_TEXTS.items())
def test_an_error_of_cuda_is_found_behind_another_exception(
    text: str, cause: str, prefix: str
) -> None:
    joiner = "\nDuring handling of the above exception, another exception occurred:\n\n"
    told = "ValueError: the exchange failed"
    log = _raised(prefix + text) + joiner + _raised(told)
    known = Diagnosis(verdict=Verdict.RUNTIME_ERROR, cause="exception", evidence=told, ranks=(0,))
    wanted = replace(known, cause=cause, evidence=prefix + text)
    assert _refined(known, _logs(log), Phase.VERIFY) == wanted


def test_nccl_is_not_blamed_for_the_access_that_it_ran_into() -> None:
    line = (
        "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:94\n"
        "ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\n"
        "Cuda failure 700 'an illegal memory access was encountered'"
    )
    found = refine(
        Verdict.RUNTIME_ERROR,
        "nccl",
        "DistBackendError: NCCL error",
        _logs(_raised(line)),
        Phase.TIMED,
    )
    assert found.cause == "illegal_access"


def test_the_assertion_that_failed_on_the_device_is_the_evidence() -> None:
    printed = (
        "/tmp/k.cu:14: void step(int): block: [3,0,0], thread: [65,0,0] Assertion `i < n` failed."
    )
    log = f"{printed}\n" + _raised(
        "torch.AcceleratorError: CUDA error: device-side assert triggered"
    )
    found = refine(Verdict.RUNTIME_ERROR, "device_assert", "…", _logs("", log), Phase.VERIFY)
    assert (found.evidence, found.ranks) == (printed, (1,))


def test_of_a_fault_that_all_ranks_show_the_earliest_is_named() -> None:
    error = "terminated with exception: CUDA error: an illegal memory access was encountered"
    watchdog = "[rank{0}]:[E1121 17:01:0{1}.250000000 ProcessGroupNCCL.cpp:2093] [Rank {0}] {2}"
    logs = _logs(*(watchdog.format(rank, 5 - rank, error) for rank in range(4)))
    found = refine(
        Verdict.RUNTIME_ERROR, "illegal_access", "…", logs, Phase.VERIFY, ranks=(0, 1, 2, 3)
    )
    assert found.ranks == (3,)
    assert found.evidence == logs[3].text


def test_where_nothing_is_dated_all_ranks_that_show_it_are_named() -> None:
    log = _raised("torch.AcceleratorError: CUDA error: an illegal memory access was encountered")
    found = refine(
        Verdict.RUNTIME_ERROR, "illegal_access", "…", _logs(log, "", log), Phase.VERIFY, ranks=(2,)
    )
    assert found.ranks == (0, 2)


def test_a_quoted_source_line_is_no_error() -> None:
    log = (
        "Traceback (most recent call last):\n"
        '  File "/tmp/rank0/submission.py", line 9, in solution\n'
        '    raise ValueError("a CUDA error: misaligned address would be worse")\n'
        "ValueError: no\n"
    )
    known = Diagnosis(verdict=Verdict.RUNTIME_ERROR, cause="exception", evidence="ValueError: no")
    assert _refined(known, _logs(log), Phase.VERIFY) == known


def test_the_last_failure_of_a_log_reaches_back_to_what_it_grew_from() -> None:
    first, second, third = (_raised(f"ValueError: {name}") for name in ("one", "two", "three"))
    joined = (
        f"{second}\nThe above exception was the direct cause of the following exception:\n\n{third}"
    )
    assert last_failure(f"{first}printed\n{joined}") == joined
    assert last_failure("no traceback") == ""


def test_every_cause_is_a_word() -> None:
    causes = {sign.cause for sign in ROOTS + CRASHES + AFTERMATH}
    assert all(cause.isidentifier() and cause.islower() for cause in causes | CAUSES)
