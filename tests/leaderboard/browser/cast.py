"""A small site with something on every page, and hostile texts wherever a submitter writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from evaluator.messages.profile import Evidence, Mechanism, Tag
from evaluator.messages.report import Environment, RankLog, Verdict
from leaderboard.models import (
    DataVersion,
    Hardware,
    LanguageModel,
    Problem,
    Run,
    Source,
    Submission,
)
from leaderboard.submissions import editing
from tests.leaderboard import factory, gpu_report
from tests.leaderboard.problem_payload import COST

NAME = "<img src=x onerror=alert(1)>\u202e"
SHOWN = "<img src=x onerror=alert(1)>[U+202E]"
STEP = 'import torch\n\n\ndef solution(tensor):\n    """Step {}."""\n    return tensor.clone()\n'
LISTS = (
    *("categories", "matrix", "problems", "hardware", "compare", "search"),
    *("profiles", "mechanisms", "beats-nccl"),
    *("methodology", "status", "snapshots", "submit", "account", "attacks", "api/v1/"),
)
PLACES = {
    "board": "/",
    "category": "/categories/tensor",
    "problem": "/problems/1-allreduce",
    "class": "/hardware/h200x2",
    "processors": "/hardware/cpu",
    "results": "/search?q=problem",
    "figure": "/figures/fast-p",
    "empty figure": "/figures/pass-k?harness=human",
    "heat": "/figures/category-heat",
    "roofline": "/figures/roofline-links",
    "login": "/account/login",
    "not found": "/kernels/none",
}
GPUS: Mapping[str, Any] = {
    "hardware_id": "h200x2",
    "device": "cuda",
    "dtype": "bfloat16",
    "size": "standard",
}


def make_site() -> dict[str, str]:
    """An agentic submission, a hostile one, a baseline, a claim; addresses by name."""
    DataVersion.objects.bump()
    Hardware.objects.get_or_create(
        slug="h200x2", defaults={"title": "2 x NVIDIA H200", "device": "cuda", "max_world_size": 2}
    )
    factory.make_publication()
    problem, other = factory.make_problem(), factory.make_problem(2, "gemm", "expert")
    for row in (problem, other):
        row.refresh_from_db()  # what was given belongs to all tests
        row.payload["costs"]["standard"]["2"] = COST
        row.save()
    baseline = factory.make_submission("The reference")
    LanguageModel.objects.filter(pk=baseline.model_id).update(is_baseline=True)
    judge(factory.make_kernel(baseline, other, source=STEP.format(3)), speedup=1.0)
    return {**{name: f"/{name}" for name in LISTS}, **PLACES, **agentic(), **hostile()}


def agentic() -> dict[str, str]:
    """One problem in two steps, the last one in two sizes; another that ran out of time."""
    problem, other = Problem.objects.order_by("number")
    made = factory.make_submission("Model One", "agentic")
    for notes in (NAME.strip("\u202e"), "Thinking was on."):
        editing.edit(made, factory.make_user(), {"notes": notes})
    judge(factory.make_kernel(made, other), Verdict.TIMEOUT)
    judge(factory.make_kernel(made, problem, source=STEP.format(1)), speedup=1.2)
    last = judge(second_step(made, STEP.format(2)), speedup=2.0)
    judge(last.kernel, speedup=1.5, size="tiny")
    waiting = factory.make_run(factory.make_kernel(made, problem, source=STEP.format(4), attempt=2))
    return {
        "kernel": f"/kernels/{last.kernel.source_id}",
        "submission": f"/submissions/{made.pk}",
        "edit": f"/submissions/{made.pk}/edit",
        "model": f"/models/{made.model.slug}",
        "waiting": f"/runs/{waiting.id}",
        "cancel": f"/runs/{waiting.id}/cancel",
    }


def hostile() -> dict[str, str]:
    """Texts that would do harm, in a kernel that is right and in one that failed."""
    problem, other = Problem.objects.order_by("number")
    made = factory.make_submission(NAME)
    Submission.objects.filter(pk=made.pk).update(notes=f"{NAME} {'N' * 500}")
    right = factory.make_kernel(made, problem, source=hostile_source(1))
    wrong = factory.make_kernel(made, other, source=hostile_source(2))
    good = judge(right, **hostile_report())
    failed = judge(wrong, Verdict.RUNTIME_ERROR, **{**hostile_report(), "timing": None})
    first = Submission.objects.get(model__name="Model One")
    return {
        "comparison": f"/compare?a={first.pk}&b={made.pk}",
        "sources": f"/compare?kernels={right.source_id},{wrong.source_id}",
        "diff": f"/kernels/{right.source_id}?diff=reference",
        "good": f"/runs/{good.id}",
        "timeline": f"/figures/timeline?run={good.id}",
        "failed": f"/runs/{failed.id}",
        "failure": f"/kernels/{wrong.source_id}",
        "hostile submission": f"/submissions/{made.pk}",
        "hostile model": f"/models/{made.model.slug}",
    }


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
