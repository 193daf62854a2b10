"""The worker of a judging host with a judge that only reads: everything else is the real thing.

Started as `celery -A tests.leaderboard.quick_worker worker`. A kernel that calls `all_reduce` is
right, any other is wrong.
"""

from __future__ import annotations

from collections.abc import Callable

import problems
from evaluator import worker
from evaluator.judge.prefork import PreforkServer
from evaluator.messages.job import Job
from evaluator.messages.report import OutputCheck, Phase, Progress, Report, Trial, Verdict
from evaluator.sandbox.hardware import environment


def read(
    job: Job,
    on_progress: Callable[[Progress], bool] | None = None,
    prefork: PreforkServer | None = None,
) -> Report:
    is_right = "all_reduce(" in job.source
    verdict = Verdict.OK if is_right else Verdict.OUTPUT_MISMATCH
    module = problems.load(problems.find(job.problem))
    size = module.problem.sizes[job.size]
    checks = [
        OutputCheck(
            rank=rank,
            output="total",
            elements=8,
            mismatched=0 if is_right else 8,
            max_error=0.1 if is_right else 9.0,
            verdict=verdict,
        )
        for rank in range(job.world_size)
    ]
    trials = [
        Trial(trial=number, m=size.m, n=size.n, note="read", checks=tuple(checks))
        for number in range(job.trials if is_right else 1)
    ]
    return Report(
        verdict=verdict,
        message="Read.",
        problem=job.problem,
        problem_digest=module.digest,
        kernel_digest=job.kernel_digest,
        isolation=worker.host_isolation(),
        environment=environment(),
        setting=job.setting,
        phase=None if is_right else Phase.VERIFY,
        trials=tuple(trials),
    )


worker.evaluate = read  # type: ignore[attr-defined]
worker.PREFORK = PreforkServer(warm=False)
app = worker.app
