"""Whole evaluations of honest kernels, and the command line around them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest

from evaluator import (
    Dtype,
    EvaluatorError,
    Isolation,
    Job,
    Phase,
    Profile,
    Progress,
    Report,
    Verdict,
)
from evaluator.evaluate import Cancelled, evaluate
from evaluator.host.load import ANSWERS_S, MOST_PATIENCE, RUNS, limit_s, most_job_s
from evaluator.messages.codec import decode
from evaluator.messages.job import Limits
from evaluator.messages.report import UNCLEAN_HOST
from evaluator.sandbox.sandbox import REPOSITORY
from tests.evaluator.judging import judged, judged_by
from tests.evaluator.kernel_files import named

ALLREDUCE = """\
import torch.distributed as dist


def solution(tensor):
    out = tensor.clone()
    dist.all_reduce(out)
    return out
"""
WRONG = ALLREDUCE.replace("return out", "return out * 1.01")
CALL = "broadcast(out, 0)"
SLOW_IMPORT = "import time\ntime.sleep(120)\n" + ALLREDUCE
JOB = Job(problem="allreduce", source=ALLREDUCE)


@pytest.mark.alone
def test_an_honest_kernel_is_ok() -> None:
    seen: list[Progress] = []

    def listen(progress: Progress) -> bool:
        seen.append(progress)
        return False

    report = evaluate(JOB, listen)
    assert report.verdict is Verdict.OK
    assert report.problem == "allreduce"
    assert report.kernel_digest == JOB.kernel_digest
    assert len(report.trials) == JOB.trials
    assert {check.rank for trial in report.trials for check in trial.checks} == {0, 1}
    assert len({(trial.m, trial.n) for trial in report.trials}) >= 3
    assert report.timing is not None
    assert report.timing.warmup_calls >= 64
    assert report.timing.timed_calls >= 64
    assert {"build", "verify", "timed", "teardown"} <= set(report.phase_s)
    assert "uses_nccl" in report.flags
    assert report.environment.versions["torch"]
    once = [
        *(Phase.TIMED, Phase.BUILD, Phase.VERIFY, Phase.TIMED, Phase.VERIFY),
        *(Phase.PROFILE, Phase.TEARDOWN, Phase.TIMED),
    ]
    met = [phase for phase, _ in groupby(progress.phase for progress in seen)]
    assert met in (once, [Phase.BUILD, *once])  # which is said until the judge says something
    tried = [progress.done for progress in seen if progress.phase is Phase.VERIFY and progress.done]
    assert tried == [*range(1, 5), 1, 2, 5, 6]  # of the race screen two series


@pytest.mark.alone
@pytest.mark.parametrize(
    "job",
    [
        replace(JOB, problem="1", world_size=4, trials=2),
        pytest.param(replace(JOB, dtype=Dtype.BFLOAT16, trials=2), marks=pytest.mark.similar),
        replace(JOB, profile=Profile.UPSTREAM, trials=2),
    ],
    ids=["four ranks, by number", "bfloat16", "upstream profile"],
)
def test_other_settings_are_ok_too(job: Job) -> None:
    assert judged(job, hurried=True).verdict is Verdict.OK


def test_a_wrong_kernel_is_told_why() -> None:
    report = judged(replace(JOB, source=WRONG))
    assert report.verdict is Verdict.OUTPUT_MISMATCH
    assert report.timing is None
    assert report.phase == "verify"
    assert report.ranks == (0, 1)
    assert "times the tolerance" in report.message


def test_a_run_can_be_cancelled_while_it_is_silent() -> None:
    began = time.monotonic()
    with pytest.raises(Cancelled):
        judged(replace(JOB, source=SLOW_IMPORT), lambda _: time.monotonic() - began > 4)
    assert time.monotonic() - began < 15


@pytest.mark.parametrize(
    ("job", "complaint"),
    [
        (replace(JOB, problem="allreduced"), "did you mean allreduce"),
        (replace(JOB, size="huge"), "no size 'huge'"),
        (replace(JOB, world_size=3), "world sizes"),
    ],
)
def test_a_job_that_cannot_be_judged_is_not_a_verdict(job: Job, complaint: str) -> None:
    with pytest.raises(EvaluatorError, match=complaint):
        judged(job)


def run_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "evaluator", *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_command_line_prints_a_report(tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.py"
    kernel.write_text(WRONG)
    done = run_command("run", "1", str(kernel))
    assert done.returncode == 1
    assert decode(Report, json.loads(done.stdout)).verdict is Verdict.OUTPUT_MISMATCH


@pytest.mark.alone
def test_the_command_line_has_a_readable_summary(tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.py"
    kernel.write_text(ALLREDUCE)
    done = run_command("run", "allreduce", str(kernel), "--pretty", "--trials", "2")
    assert done.returncode == 0
    assert "OK  allreduce" in done.stdout
    assert "kernel " in done.stdout


def test_the_command_line_checks_with_all_ranks_on_one_device(tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.py"
    kernel.write_text(ALLREDUCE)
    asked = ("--placement", "shared", "--pretty", "--trials", "2")
    done = run_command("run", "allreduce", str(kernel), *asked)
    assert done.returncode == 0
    assert "placement: shared (all ranks on one device; checked, not timed)" in done.stdout
    assert "kernel " not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("run", "nothing", "KERNEL"), "no problem is called"),
        (("run", "1", "missing.py"), "No such file"),
        (("run", "1", "KERNEL", "--world-size", "1"), "world_size must be"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(
    arguments: tuple[str, ...], complaint: str, tmp_path: Path
) -> None:
    kernel = tmp_path / "kernel.py"
    kernel.write_text(ALLREDUCE)
    done = run_command(*(str(kernel) if a == "KERNEL" else a for a in arguments))
    assert done.returncode == 2
    assert complaint in done.stderr


def test_check_names_the_level() -> None:
    done = run_command("check", "--json")
    assert done.returncode == 0
    assert Isolation(json.loads(done.stdout)["isolation"])


def test_the_supervisor_never_loads_torch() -> None:
    """Nor does the worker: a pool process with torch in it would cost memory on every host."""
    code = (
        "import sys, evaluator.__main__, evaluator.worker\n"
        "sys.exit(any(name in sys.modules for name in ('torch', 'numpy')))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, check=False)
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("kernel", "verdict"),
    [
        pytest.param("honest/all_reduce", Verdict.RESOURCE_LIMIT, marks=pytest.mark.similar),
        ("misbehaving/raises", Verdict.RUNTIME_ERROR),
    ],
)
def test_processes_that_cannot_be_ended_do_not_undo_a_verdict(
    kernel: str, verdict: Verdict
) -> None:
    report = judged_by("haunted", named(*kernel.split("/")).job)
    assert (report.verdict, report.timing) == (verdict, None)
    assert UNCLEAN_HOST in report.flags


@pytest.mark.parametrize("tuning", ["unlucky", pytest.param("bereaved", marks=pytest.mark.similar)])
def test_a_failure_of_ours_beside_a_kernel_may_be_a_coincidence(tuning: str) -> None:
    report = judged_by(tuning, named("honest", "all_reduce").job)
    assert report.verdict is Verdict.OK
    assert report.timing is not None


@pytest.mark.parametrize(
    ("tuning", "error"),
    [
        ("unfit", "unfit inputs"),
        ("unjoined", "the reference failed: .*not callable"),
        pytest.param("torchless", "the reference failed", marks=pytest.mark.similar),
    ],
)
def test_a_failure_of_ours_that_needs_no_kernel_is_ours(tuning: str, error: str) -> None:
    with pytest.raises(EvaluatorError, match=error):
        judged_by(tuning, named("honest", "all_reduce").job)


def test_a_job_ends_by_limits_of_its_own_before_its_judge_is_killed() -> None:
    limits = Limits()
    phases = [Phase.BUILD] * 2 + [Phase.VERIFY] * 2 + [Phase.TIMED] * 3
    run_s = sum(limit_s(phase, limits, MOST_PATIENCE) for phase in phases) + ANSWERS_S
    assert most_job_s(limits) > (RUNS + 1) * run_s


@pytest.mark.parametrize("tuning", ["guarded", "accounting"])
def test_the_judge_works_and_times_with_nothing_of_a_submission_beside(tuning: str) -> None:
    kernel = named("misbehaving", "files_in_flight_left_behind")
    assert judged_by(tuning, kernel.job).verdict is Verdict.OK


@pytest.mark.parametrize("parameters", ["tensor", "tensor, src=0"])
def test_a_kernel_of_pkb_needs_no_argument_that_pkb_leaves_out(parameters: str) -> None:
    source = ALLREDUCE.replace("(tensor)", f"({parameters})").replace("all_reduce(out)", CALL)
    job = Job(problem="broadcast", source=source, profile=Profile.UPSTREAM, trials=2)
    assert judged(job, hurried=True).verdict is Verdict.OK
    if parameters == "tensor":
        assert judged(replace(job, profile=Profile.HARDENED)).verdict is Verdict.RUNTIME_ERROR
