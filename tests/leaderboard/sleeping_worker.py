"""The worker of a judging host with a judge that sleeps instead: everything else is the real thing.

Started as `celery -A tests.leaderboard.sleeping_worker worker`. A source says how long: `# 1.5 s`.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable

from evaluator import worker
from evaluator.evaluate import Cancelled
from evaluator.judge.prefork import PreforkServer
from evaluator.messages.job import Job
from evaluator.messages.report import Phase, Progress, Report, Verdict
from evaluator.sandbox.hardware import environment

STEP_S = 0.1


def sleep(
    job: Job,
    on_progress: Callable[[Progress], bool] | None = None,
    prefork: PreforkServer | None = None,
) -> Report:
    found = re.search(r"# ([0-9.]+) s", job.source)
    steps = round(float(found[1]) / STEP_S) if found else 1
    for step in range(steps):
        time.sleep(STEP_S)
        progress = Progress(phase=Phase.VERIFY, done=step, total=steps)
        if on_progress is not None and on_progress(progress):
            raise Cancelled
    return Report(
        verdict=Verdict.OUTPUT_MISMATCH,
        message="Slept.",
        problem=job.problem,
        problem_digest=hashlib.sha256(job.problem.encode()).hexdigest(),
        kernel_digest=job.kernel_digest,
        isolation=worker.host_isolation(),
        environment=environment(),
        setting=job.setting,
        phase=Phase.VERIFY,
    )


worker.evaluate = sleep  # type: ignore[attr-defined]
worker.PREFORK = PreforkServer(warm=False)
app = worker.app
