"""Reports of an honest judge, whatever the submission did: none is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from evaluator.evaluate import evaluate
from evaluator.messages.codec import encode
from evaluator.messages.report import JUDGE_VERSION, RankLog, Verdict
from evaluator.sandbox.hardware import environment
from evaluator.sandbox.selfcheck import check_host
from leaderboard.models import (
    Problem,
    Run,
    WorkerHost,
)
from leaderboard.runs import evaluation
from tests.leaderboard import factory
from tests.leaderboard.gpu_report import make_timeline
from tests.leaderboard.running import (
    claim,
    fresh,
    report_of,
    worker_token,
)

Told = dict[str, Any]


@pytest.mark.parametrize(
    "change",
    [
        {"logs": (RankLog(rank=-1, text="\x01" * 65_600), RankLog(rank=1, text="\u20ac" * 65_600))},
        {"timelines": (make_timeline(0, calls=400), make_timeline(1, calls=400))},
        {"evidence": "x" * 5000, "cause": "claim", "ranks": (1, 0)},
    ],
)
def test_whatever_ranks_write_within_the_judges_caps_is_stored(run: Run, change: Told) -> None:
    lease = claim(run)
    told = report_of(run, Verdict.RUNTIME_ERROR, **change)
    evaluation.finish(run.pk, lease.holding, json.loads(json.dumps(told)))
    assert fresh(run).verdict == Verdict.RUNTIME_ERROR


RIGHT = """
import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total
"""


@pytest.mark.parametrize(
    ("source", "verdict"),
    [
        (RIGHT, Verdict.OK),
        ("def solution(tensor):\n    return tensor.clone()\n", Verdict.OUTPUT_MISMATCH),
    ],
)
def test_what_the_judge_of_this_release_reports_is_stored(
    db: None, source: str, verdict: Verdict
) -> None:
    call_command("sync_problems", verbosity=0)
    problem = Problem.objects.get(slug="allreduce")
    kernel = factory.make_kernel(factory.make_submission(), problem, source=source)
    run = factory.make_run(kernel)
    here, isolation = environment(), check_host().isolation
    told = {"hardware": here.hardware, "isolation": isolation.value, "judge_version": JUDGE_VERSION}
    WorkerHost.objects.create(
        host=here.host, queue="cpu", token=worker_token(), last_seen_at=timezone.now(), **told
    )
    lease = claim(run, here.host)
    report = encode(evaluate(lease.job))
    evaluation.finish(run.pk, lease.holding, json.loads(json.dumps(report)))
    assert fresh(run).verdict == verdict
