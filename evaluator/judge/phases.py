"""Runs the phases of one judgement in their order."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace

from evaluator.diagnosis.diagnose import first_fault
from evaluator.host import gpus
from evaluator.host.load import RUNS
from evaluator.judge.baseline import Baselines, measure_after, measure_before
from evaluator.judge.findings import Findings
from evaluator.judge.profile_phase import profile
from evaluator.judge.race_screen import screen_races
from evaluator.judge.run_context import RunContext, paused, trial_call
from evaluator.judge.timed_phase import GATED_DEVICES, time_side
from evaluator.messages.faults import (
    BesideSubmission,
    DirtyHost,
    EvaluatorError,
    Fault,
    GpuFull,
    Survivors,
)
from evaluator.messages.job import Placement
from evaluator.messages.report import UNCLEAN_HOST, Phase, Progress, Trial, Verdict
from evaluator.sandbox import support
from evaluator.sandbox.rank_group import RankGroup
from evaluator.timing.limits import limits_of
from evaluator.timing.pace import CHECK_AFTER_S
from evaluator.timing.roofline import MARGIN, roofline_bounds, unbeatable_us
from evaluator.timing.timing import Baseline, Times, held_to, summarise
from problems.timed_work import work_share
from problems.trials import TrialSpec, trials_before_timing

LEAST_CALL_US = 1.0  # of one launch on a GPU


def run_phases(context: RunContext, baselines: Baselines) -> Fault | None:
    """Return the submission's fault, if it has one. Raises BesideSubmission for what may be one."""
    try:
        if lacking := support.lacking(context.job, context.oracle.module.problem, context.host):
            raise Fault(Verdict.HOST_UNSUPPORTED, "host", lacking)
        with context.host.alone():
            if context.job.placement is Placement.FULL:
                _judge_timed(context, baselines)
            else:
                _judge(context)
    except Fault as fault:
        return _own_fault(context, fault)
    except DirtyHost:
        raise
    except (EvaluatorError, OSError, MemoryError) as error:
        if isinstance(error, GpuFull) and (fault_of_memory := context.fault_of_full_gpu()):
            return fault_of_memory
        if context.submission.is_ended or not context.submission.is_started:
            raise
        raise BesideSubmission(str(error) or type(error).__name__) from error
    return None


def _judge_timed(context: RunContext, baselines: Baselines) -> None:
    """Judge a kernel, and time it against a reference that is timed alone."""
    kept = baselines.find(context)
    with contextlib.ExitStack() as pause:
        if kept is None:
            with context.phase(Phase.TIMED):
                baseline = Baseline(before=measure_before(context))
            baselines.keep(context, baseline)  # also where the submission fails
            pause.enter_context(paused(context.reference))
        else:
            baseline = kept.baseline
        times = _judge(context)
    if UNCLEAN_HOST in context.findings.flags:
        return
    is_kept = kept is not None and kept.age_s < CHECK_AFTER_S
    if not is_kept:
        with context.phase(Phase.TIMED):
            baseline = measure_after(context, baseline.after or baseline.before)
        baselines.keep(context, baseline)
    subtracts = context.job.device in GATED_DEVICES
    context.findings.timing, flags = summarise(
        times, baseline, subtracts_empty=subtracts, is_kept=is_kept
    )
    context.findings.flags += flags


def _judge(context: RunContext) -> Times:
    """Judge a kernel; return its times, none where ranks share a GPU."""
    times, is_timed = Times(), context.job.placement is Placement.FULL
    with context.phase(Phase.BUILD):
        _build(context)
    trials = context.oracle.trials
    before = trials_before_timing(len(trials))
    with context.phase(Phase.VERIFY):
        _verify(context, trials[:before])
    if is_timed:
        with context.phase(Phase.TIMED), context.pool.quiet():
            times = time_side(context, context.submission)
        context.findings.gpus = gpus.states(context.host.gpus)
    with context.phase(Phase.VERIFY):
        times.series += screen_races(context)
        _verify_again(context, trials[before:])
    context.submission.check_health()
    with context.phase(Phase.PROFILE):
        profile(context)
    with context.phase(Phase.TEARDOWN):
        end_submission(context.submission, context.findings)
    return times


def _own_fault(context: RunContext, fault: Fault) -> Fault:
    """Return a submission's fault; raises BesideSubmission where it lacked memory that others
    hold."""
    if fault.cause == "gpu_memory" and context.is_crowded:
        raise BesideSubmission(f"others hold memory of its GPUs: {fault.message}")
    return fault


def try_reference(context: RunContext, baselines: Baselines, *, error: EvaluatorError) -> Fault:
    """Return the fault of a submission beside which ours failed again and again, if the reference
    in its place is judged well, in a quarter of the time; raises what failed where it is not."""
    control = replace(context, findings=Findings(), is_control=True)
    context.oracle.hurry(control.share)
    try:
        found = run_phases(control, baselines)
    except DirtyHost:
        raise
    except (EvaluatorError, OSError, MemoryError):
        raise error from None
    if found is not None or UNCLEAN_HOST in control.findings.flags:
        raise error
    message = (
        f"the judge's own processes failed {RUNS} times beside it, and not without it: {error}"
    )
    return Fault(Verdict.RESOURCE_LIMIT, "beside", message)


def check_bound(context: RunContext) -> Fault | None:
    """Return a fault for what no kernel can be: faster than the hardware, or than one launch, by
    more than the resolution. Somebody has to look at it. By less, it takes as long as they do."""
    job, module, timing = context.job, context.oracle.module, context.findings.timing
    if timing is None or not context.host.gpus:
        return None
    least_us = LEAST_CALL_US
    if limits := limits_of(context.host.gpus[0].name):
        size = module.problem.sizes[job.size]
        dims = module.dims(size.m, size.n, job.world_size)
        cost = module.cost(dims, job.world_size, job.dtype.itemsize).times(work_share(module))
        found = roofline_bounds(cost, job.dtype, limits, timing.burst_calls)
        context.findings.bounds = found
        least_us = max(least_us, MARGIN * unbeatable_us(found))
    if timing.kernel_us >= least_us:
        return None
    if timing.kernel_us + (timing.resolution_us or 0.0) >= least_us:
        context.findings.timing = held_to(timing, least_us)
        return None
    context.findings.phase = Phase.TIMED
    message = f"{timing.kernel_us:.1f} us a call, where this hardware needs {least_us:.1f}"
    return Fault(Verdict.FASTER_THAN_LIGHT, "bound", message)


def _build(context: RunContext) -> None:
    """Have the ranks join and import while the oracle's make inputs and answers."""
    context.start(context.submission)
    context.prepare()
    context.wait_ready(context.submission)
    context.give_slabs(context.submission)


def _verify(
    context: RunContext, trials: Sequence[tuple[str, TrialSpec]], *, where_timed: bool = False
) -> None:
    """Judge trials in lockstep: fresh inputs, poisoned outputs, skewed starts, every element
    compared. Asked `where_timed`, the calls lie where timed ones lay."""
    for done, (key, spec) in enumerate(trials, start=len(context.findings.trials)):
        with context.submission.paused():  # no helper of it takes processors from the oracle
            context.oracle.make_ready(key, where_timed=where_timed)
        context.submission.load(context.oracle.plans(key))
        context.oracle.clear(key, context.submission.side)
        context.call_s = trial_call(context.submission, context.oracle)
        with context.submission.paused():
            context.oracle.snapshot(key, context.submission.side)
            checks = context.oracle.check(key)
        trial = Trial(trial=done, m=spec.m, n=spec.n, note=spec.note, checks=tuple(checks))
        context.findings.trials.append(trial)
        if not trial.passed:
            raise first_fault(trial.checks, f"trial {done} ({spec.note})")
        context.oracle.drop(key)
        total = len(context.oracle.trials)
        context.emit(Progress(phase=Phase.VERIFY, done=done + 1, total=total))


def _verify_again(context: RunContext, trials: Sequence[tuple[str, TrialSpec]]) -> None:
    """Judge the trials that were left: a kernel that has counted its calls believes that none
    comes. Then lay out timed calls again, those of the profile ready to be made."""
    _verify(context, trials, where_timed=True)
    context.submission.load(context.oracle.plans("timed"))
    with context.submission.paused():
        context.oracle.clear("timed", context.submission.side)


def end_submission(submission: RankGroup, findings: Findings) -> None:
    """End the submission, unless that is done. One that cannot be ended keeps its verdict, or gets
    one for that; this process and its host serve nobody after it."""
    if submission.is_ended:
        return
    try:
        findings.logs = submission.kill()
    except Survivors:
        findings.flags.append(UNCLEAN_HOST)
        findings.logs = submission.logs.finish()
