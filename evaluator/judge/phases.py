"""Runs the phases of one judgement in their order."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from evaluator.diagnosis.diagnose import first_fault
from evaluator.host.load import RUNS
from evaluator.judge.findings import Findings
from evaluator.judge.pool import REFERENCE, SUBMISSION
from evaluator.judge.profile_phase import profile
from evaluator.judge.race_screen import screen_races
from evaluator.judge.run_context import RunContext, trial_call
from evaluator.judge.timed_phase import time_alone, time_both
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
from evaluator.timing.roofline import exceeds_roofline, roofline_bounds, unbeatable_us
from problems.guards import work_share
from problems.trials import TrialSpec, trials_before_timing

CORES_PER_RANK = 4


def run_phases(context: RunContext) -> Fault | None:
    """Return the submission's fault, if it has one. Raises BesideSubmission for what may be one."""
    try:
        if lacking := support.lacking(context.job, context.oracle.module.problem, context.host):
            raise Fault(Verdict.HOST_UNSUPPORTED, "host", lacking)
        with context.host.building(), context.phase(Phase.BUILD):
            _build(context)
        is_timed = context.job.placement is Placement.FULL
        with context.host.alone():
            trials = context.oracle.trials
            before = trials_before_timing(len(trials))
            with context.phase(Phase.VERIFY):
                _verify(context, trials[:before])
            if is_timed:
                with context.phase(Phase.TIMED), context.pool.quiet():
                    samples = time_both(context)
            if context.job.race_screen or not is_timed:
                with context.phase(Phase.VERIFY):
                    screen_races(context)
            with context.phase(Phase.VERIFY):
                _verify_again(context, trials[before:])
            context.submission.check_health()
            with context.phase(Phase.PROFILE):
                profile(context)
            with context.phase(Phase.TEARDOWN):
                end_submission(context.submission, context.findings)
            if is_timed and UNCLEAN_HOST not in context.findings.flags:
                with context.phase(Phase.TIMED), context.pool.quiet():
                    time_alone(context, samples)
    except Fault as fault:
        return _own_fault(context, fault)
    except DirtyHost:
        raise
    except (EvaluatorError, OSError, MemoryError) as error:
        if isinstance(error, GpuFull) and (fault_of_memory := context.fault_of_full_gpu()):
            return fault_of_memory
        if context.submission.is_ended:
            raise
        raise BesideSubmission(str(error) or type(error).__name__) from error
    return None


def _own_fault(context: RunContext, fault: Fault) -> Fault:
    """Return a submission's fault; raises BesideSubmission where it lacked memory that others
    hold."""
    if fault.cause == "gpu_memory" and context.is_crowded:
        raise BesideSubmission(f"others hold memory of its GPUs: {fault.message}")
    return fault


def try_reference(context: RunContext, *, error: EvaluatorError) -> Fault:
    """Return the fault of a submission beside which ours failed again and again, if the reference
    in its place is judged well, in a quarter of the time; raises what failed where it is not."""
    control = replace(context, findings=Findings(), is_control=True)
    context.oracle.hurry(control.share)
    try:
        found = run_phases(control)
    except DirtyHost:
        raise
    except (EvaluatorError, OSError, MemoryError):
        raise error from None
    finally:
        control.close_slabs()
    if found is not None or UNCLEAN_HOST in control.findings.flags:
        raise error
    message = (
        f"the judge's own processes failed {RUNS} times beside it, and not without it: {error}"
    )
    return Fault(Verdict.RESOURCE_LIMIT, "beside", message)


def check_bound(context: RunContext) -> Fault | None:
    """Return a fault for what no kernel can be: faster than the hardware. Somebody has to look at
    it. Raises EvaluatorError where the host's noise may be why."""
    job, module, timing = context.job, context.oracle.module, context.findings.timing
    limits = limits_of(context.host.gpus[0].name) if context.host.gpus else None
    if limits is None or timing is None:
        return None
    size = module.problem.sizes[job.size]
    cost = module.cost(
        module.dims(size.m, size.n, job.world_size), job.world_size, job.dtype.itemsize
    )
    cost = cost.times(work_share(module))
    context.findings.bounds = found = roofline_bounds(cost, job.dtype, limits, timing.burst_calls)
    if not exceeds_roofline(found, timing.kernel_us):
        return None
    context.findings.phase = Phase.TIMED
    message = (
        f"{timing.kernel_us:.1f} us a call, where this hardware needs {unbeatable_us(found):.1f}"
    )
    noise_us = context.findings.noise_us
    if not exceeds_roofline(found, timing.kernel_us + noise_us):
        raise EvaluatorError(f"{message}, and by empty batches it may be {noise_us:.1f} us longer")
    return Fault(Verdict.FASTER_THAN_LIGHT, "bound", message)


def _build(context: RunContext) -> None:
    """Have the ranks join and import while the oracle's make inputs and answers."""
    sides, enough_cores = [context.submission], CORES_PER_RANK * context.job.world_size
    is_timed = context.job.placement is Placement.FULL
    has_room = context.reference.is_started or (os.cpu_count() or 1) >= enough_cores
    if is_timed and has_room:
        sides = [context.reference, context.submission]
    for side in sides:
        context.start(side)
    context.oracle.prepare_all()
    context.slabs = context.oracle.make_slabs([SUBMISSION, REFERENCE] if is_timed else [SUBMISSION])
    context.wait_ready(context.submission)
    if context.reference in sides:
        with context.submission.paused():  # helpers that it left at work would be in the way
            context.wait_ready(context.reference)
    context.give_slabs(context.submission)


def _verify(context: RunContext, trials: Sequence[tuple[str, TrialSpec]]) -> None:
    """Judge trials in lockstep: fresh inputs, poisoned outputs, skewed starts, every element
    compared."""
    for done, (key, spec) in enumerate(trials, start=len(context.findings.trials)):
        with context.submission.paused():  # no helper of it takes processors from the oracle
            context.oracle.make_ready(key)
        context.submission.load(context.oracle.plans(key))
        context.oracle.clear(key, SUBMISSION)
        context.call_s = trial_call(context.submission, context.oracle)
        with context.submission.paused():
            context.oracle.snapshot(key, SUBMISSION)
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
    context.oracle.chain_inputs("timed", (), locked=False)
    _verify(context, trials)
    context.submission.load(context.oracle.plans("timed"))
    with context.submission.paused():
        context.oracle.clear("timed", SUBMISSION)


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
