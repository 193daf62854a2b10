"""Reports of an honest judge, whatever the submission did: none is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from evaluator.evaluate import evaluate
from evaluator.messages.codec import encode
from evaluator.messages.report import JUDGE_VERSION, RankLog, Verdict
from evaluator.sandbox.hardware import environment
from evaluator.sandbox.selfcheck import check_host
from evaluator.timing.timing import Samples, Walls, summarise
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


def batches(kernel_us: float, baseline_us: float) -> Walls:
    noise = [0.98, 1.0, 1.03, 1.01, 0.99, 1.0, 1.02]
    return Walls(
        calls=16,
        kernel=[5000.0 + 16 * kernel_us * n for n in noise],
        baseline=[5000.0 + 16 * baseline_us * n for n in noise],
        empty=[5000.0 * n for n in noise],
    )


def singles(kernel_us: float, baseline_us: float, empty_us: float = 3000.0) -> Walls:
    at = range(16)
    return Walls(
        calls=1,
        per_round=16,
        kernel=[empty_us + kernel_us + i for i in at],
        baseline=[empty_us + baseline_us + 2 * i for i in at],
        empty=[empty_us + 3 * i for i in at],
    )


FAST, ALONE = batches(100.0, 300.0), batches(0.0, 150.0)
SAMPLES = {
    "batches": Samples(batches=FAST, single=singles(400.0, 600.0), alone=FAST),
    "disturbed": Samples(batches=FAST, single=singles(400.0, 600.0), alone=ALONE),
    "merged": Samples(
        batches=FAST, single=singles(900.0, 350.0), alone=singles(0.0, 350.0, empty_us=2900.0)
    ),
    "merged, disturbed": Samples(
        batches=FAST, single=singles(900.0, 350.0), alone=singles(0.0, 150.0, empty_us=2500.0)
    ),
    "merged as single calls alone show": Samples(
        batches=FAST,
        single=singles(900.0, 950.0),
        single_alone=singles(0.0, 320.0, empty_us=2700.0),
    ),
    "open": Samples(
        batches=Walls(calls=16),
        single=singles(90.0, 350.0),
        alone=singles(0.0, 350.0),
        is_open=True,
    ),
    "open, disturbed": Samples(
        batches=FAST, single=singles(90.0, 350.0), alone=singles(0.0, 150.0, 2500.0), is_open=True
    ),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_times_agree_whatever_of_them_is_scored(name: str, run: Run) -> None:
    found, flags = summarise(SAMPLES[name])
    assert ("superbatch_suspect" in flags) is name.startswith("merged")
    assert ("reference_disturbed" in flags) is name.endswith(("disturbed", "show"))
    lease = claim(run)
    told = report_of(run, Verdict.OK, timing=replace(found, rank_us=()), flags=flags)
    evaluation.finish(run.pk, lease.holding, json.loads(json.dumps(told)))
    assert fresh(run).verdict == Verdict.OK


RIGHT = """
import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total
"""


@pytest.mark.once
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
