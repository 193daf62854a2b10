"""A small site with something on every page, and hostile texts wherever a submitter writes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evaluator.profiling.mechanism import Evidence, Mechanism, Tag
from evaluator.report import Environment, RankLog, Verdict
from leaderboard.models import DataVersion, Hardware, LanguageModel, Run, Source, Submission
from tests.leaderboard import factory, gpu_report
from tests.leaderboard.problem_payload import COST

NAME = "<img src=x onerror=alert(1)>\u202e"
SHOWN = "<img src=x onerror=alert(1)>[U+202E]"
STEP = 'import torch\n\n\ndef solution(tensor):\n    """Step {}."""\n    return tensor.clone()\n'
GPUS = {"hardware_id": "h200x2", "device": "cuda", "dtype": "bfloat16", "size": "standard"}


def make_site() -> dict[str, str]:
    """An agentic submission, a hostile one, a baseline, a claim; addresses by name."""
    DataVersion.objects.get_or_create(pk=1)
    Hardware.objects.get_or_create(
        slug="h200x2", defaults={"title": "2 x NVIDIA H200", "device": "cuda", "max_world_size": 2}
    )
    factory.make_publication()
    one, two = factory.make_problem(), factory.make_problem(2, "gemm", "expert")
    for problem in (one, two):
        problem.payload["costs"]["standard"]["2"] = COST
        problem.save()
    first, second = factory.make_submission("Model One", "agentic"), hostile_submission()
    judge(factory.make_kernel(first, two), Verdict.TIMEOUT)
    judge(factory.make_kernel(first, one, source=STEP.format(1)), speedup=1.2)
    last = judge(second_step(first, STEP.format(2)), speedup=2.0)
    judge(last.kernel, speedup=1.5, size="tiny")
    good = judge(factory.make_kernel(second, one, source=hostile_source(1)), **hostile_report())
    failed = judge(
        factory.make_kernel(second, two, source=hostile_source(2)),
        Verdict.RUNTIME_ERROR,
        **{**hostile_report(), "timing": None},
    )
    baseline = factory.make_submission("The reference")
    LanguageModel.objects.filter(pk=baseline.model_id).update(is_baseline=True)
    judge(factory.make_kernel(baseline, two, source=STEP.format(3)), speedup=1.0)
    waiting = factory.make_run(factory.make_kernel(second, one, source=STEP.format(4), attempt=2))
    return {
        **{name: f"/{name}" for name in LISTS},
        "board": "/",
        "category": "/categories/tensor",
        "hardware": "/hardware/h200x2",
        "classes": "/hardware",
        "host": "/hardware/cpu",
        "comparison": f"/compare?a={first.pk}&b={second.pk}",
        "sources": f"/compare?kernels={last.kernel.source_id},{good.kernel.source_id}",
        "results": "/search?q=problem",
        "problem": "/problems/1-allreduce",
        "kernel": f"/kernels/{last.kernel.source_id}",
        "diff": f"/kernels/{good.kernel.source_id}?diff=reference",
        "good": f"/runs/{good.id}",
        "failed": f"/runs/{failed.id}",
        "failure": f"/kernels/{failed.kernel.source_id}",
        "waiting": f"/runs/{waiting.id}",
        "submission": f"/submissions/{first.pk}",
        "hostile submission": f"/submissions/{second.pk}",
        "model": f"/models/{first.model.slug}",
        "hostile model": f"/models/{second.model.slug}",
        "login": "/account/login",
        "not found": "/kernels/none",
    }


LISTS = (
    *("categories", "matrix", "problems", "compare", "search"),
    *("methodology", "status", "snapshots", "submit", "account"),
)


def judge(kernel: Any, verdict: Verdict = Verdict.OK, speedup: float = 1.3, **changes: Any) -> Run:
    """On two GPUs; `changes` are of the report, `size` of the run."""
    run = factory.make_run(kernel, **{**GPUS, "size": changes.pop("size", GPUS["size"])})
    if verdict is not Verdict.OK:
        return factory.finish(run, factory.make_report(run, verdict, **changes))
    return factory.finish(run, gpu_report.make_gpu_report(run, speedup, **changes))


def second_step(submission: Submission, source: str) -> Any:
    return submission.kernels.create(
        problem=factory.make_problem(),
        attempt=1,
        step=2,
        backend="triton",
        source=Source.objects.keep(source)[0],
    )


def hostile_submission() -> Submission:
    made = factory.make_submission(NAME)
    made.notes = f"{NAME} {'N' * 500}"
    made.save()
    return made


def hostile_source(number: int) -> str:
    return f'def solution(x):\n    """{NAME} {number}"""\n    return {"x" * 5000}\n'


def hostile_report() -> dict[str, Any]:
    """Fields of a report in which every text is hostile, and some are long."""
    timeline = gpu_report.make_timeline(0, calls=4)
    events = tuple(replace(event, name=NAME + "k" * 200) for event in timeline.events)
    return {
        "message": NAME,
        "cause": NAME,
        "evidence": NAME + "e" * 2000,
        "flags": ("uses_nccl", f"static:{NAME}"),
        "logs": (RankLog(rank=0, text=NAME + "x" * 10_000, dropped_bytes=9),),
        "timelines": (replace(timeline, events=events),),
        "mechanisms": (Mechanism(tag=Tag.NCCL, evidence=Evidence.SOURCE, detail=NAME),),
        "environment": Environment(hardware=NAME, host=NAME, versions={NAME: "v" * 200}),
    }
