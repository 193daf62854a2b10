"""A site full of made-up results, and one more: what a year of use may leave behind.

Rows are made as the site makes them, in bulk; the summary is then made by the site's own code.
"""

from __future__ import annotations

import dataclasses
import functools
import random
import statistics
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest import mock

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection, transaction
from django.utils import timezone

from evaluator.messages.codec import encode
from evaluator.messages.profile import Evidence, Mechanism, Tag
from evaluator.messages.report import (
    JUDGE_VERSION,
    Environment,
    GpuState,
    Isolation,
    Phase,
    Report,
    Verdict,
)
from evaluator.messages.roofline_bounds import RooflineBounds
from leaderboard.metrics.floors import floors, limits_of
from leaderboard.models import (
    ApiToken,
    DataVersion,
    Hardware,
    Kernel,
    LanguageModel,
    Problem,
    Run,
    Scope,
    Source,
    Status,
    Submission,
    Trust,
    WorkerHost,
)
from leaderboard.read_model import summary
from leaderboard.runs import claims, evaluation
from leaderboard.runs.claims import Claimant
from leaderboard.runs.hosts import register
from leaderboard.runs.report_checks import setting_of
from leaderboard.runs.reports import columns_of
from tests.leaderboard.factory import make_trial
from tests.leaderboard.timings import make_timing

FAILURES = (
    *(Verdict.OUTPUT_MISMATCH, Verdict.OUTPUT_MISMATCH, Verdict.RUNTIME_ERROR, Verdict.TIMEOUT),
    *(Verdict.BUILD_ERROR, Verdict.SHAPE_MISMATCH),
)
TAGS = ((Tag.SYMMETRIC_MEMORY, Tag.SM_LOAD_STORE), (Tag.NCCL,), (Tag.SYMMETRIC_MEMORY, Tag.TMA))
OWNER = "benchmark"
# Longer than any problem of size `standard` needs on these.
BASELINE_US, GPUS = 50_000.0, "4 x NVIDIA H200"
BACKENDS = ("cuda", "cuda", "cuda", "triton")


@dataclass(frozen=True, kw_only=True)
class Amount:
    models: int
    problems: int
    attempts: int
    hardware: int


def fill(amount: Amount) -> dict[str, float]:
    """Make the rows, unless they are there; seconds that it took."""
    call_command("migrate", verbosity=0)
    call_command("sync_problems", verbosity=0)
    call_command("import_published", verbosity=0)
    if Submission.objects.filter(owner__username=OWNER).count() >= amount.models:
        return {}
    hosts = [register(f"h200x{n}", f"{n} x H200") for n in (4, 8, 2, 16, 32)[: amount.hardware]]
    began, draw = time.perf_counter(), random.Random(1)
    problems = list(Problem.objects.scored()[: amount.problems])
    for number in range(amount.models):
        with transaction.atomic():
            _fill_model(number, problems, hosts, amount, draw)
    made = time.perf_counter()
    summary.rebuild()
    DataVersion.objects.bump()
    return {"making rows": made - began, "rebuild_summary": time.perf_counter() - made}


def _fill_model(
    number: int,
    problems: list[Problem],
    hosts: list[Hardware],
    amount: Amount,
    draw: random.Random,
) -> None:
    owner, _ = get_user_model().objects.get_or_create(username=OWNER)
    submission = Submission.objects.create(
        model=LanguageModel.objects.named(f"Model {number}", f"Vendor {number % 12}"),
        harness="repeated" if number % 3 else "agentic",
        k=amount.attempts,
        owner=owner,
        visibility="public",
        trust=Trust.VERIFIED,
        request_digest=uuid.UUID(int=draw.getrandbits(128)).hex,
        cost_usd=round(draw.uniform(1, 400), 2),
    )
    places = [(problem, n) for problem in problems for n in range(1, amount.attempts + 1)]
    texts = [
        f"# {number} {problem.slug} {n}\ndef solution(*args):\n    return args[0]\n"
        for problem, n in places
    ]
    kernels = [
        Kernel(
            submission=submission,
            problem=problem,
            attempt=n,
            backend=draw.choice(BACKENDS),
            source=source,
        )
        for (problem, n), source in zip(places, Source.objects.keep(*texts), strict=True)
    ]
    Kernel.objects.bulk_create(kernels, batch_size=1000)
    skill = draw.uniform(0.05, 0.8)
    _insert_runs(kernels, hosts, skill, draw)


def _insert_runs(
    kernels: list[Kernel], hosts: list[Hardware], skill: float, draw: random.Random
) -> None:
    """Past the ORM, which takes five times as long for a million rows."""
    columns = [str(field.column) for field in Run._meta.concrete_fields]
    names, marks = ", ".join(columns), ", ".join(["%s"] * len(columns))
    at = {name: columns.index(name) for name in columns}
    rows: list[list[Any]] = []
    for kernel in kernels:
        tags, is_right = draw.choice(TAGS), draw.random() < skill
        usual = _row(Verdict.OK if is_right else draw.choice(FAILURES), tags)
        for host in hosts:
            row = list(usual)
            row[at["id"]] = _db_id(uuid.UUID(int=draw.getrandbits(128), version=4))
            row[at["kernel_id"]], row[at["hardware_id"]] = kernel.pk, host.pk
            row[at["problem_digest"]] = kernel.problem.digest
            if is_right:
                speedup = draw.lognormvariate(0.0, 0.6)
                row[at["speedup"]], row[at["kernel_us"]] = speedup, BASELINE_US / speedup
                row[at["speedup_low"]], row[at["speedup_high"]] = speedup * 0.97, speedup * 1.03
                row[at["utilisation"]] = speedup / 5
            rows.append(row)
    with connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO leaderboard_run ({names}) VALUES ({marks})", rows)


@functools.cache
def _row(verdict: Verdict, tags: tuple[Tag, ...]) -> tuple[Any, ...]:
    """Values of a finished run, as the database takes them."""
    now = timezone.now()
    run = Run(
        world_size=4,
        size="standard",
        dtype="bfloat16",
        profile="hardened",
        device="cuda",
        status=Status.DONE,
        tries=1,
        created_at=now,
        started_at=now,
        finished_at=now,
        host="host-1",
        **columns_of(report(verdict, tags)),
    )
    fields = Run._meta.concrete_fields
    return tuple(f.get_db_prep_save(getattr(run, f.attname), connection) for f in fields)


def _db_id(value: uuid.UUID) -> Any:
    return Run._meta.pk.get_db_prep_save(value, connection)


def report(verdict: Verdict, tags: tuple[Tag, ...], speedup: float = 1.0) -> Report:
    """A small one."""
    is_ok = verdict is Verdict.OK
    return Report(
        verdict=verdict,
        message="Correct in every trial." if is_ok else "Rank 1 returned a wrong sum.",
        problem="",
        problem_digest="",
        kernel_digest="",
        isolation=Isolation.BWRAP_CGROUP_SECCOMP,
        environment=Environment(hardware=GPUS, host="host-1", versions={"torch": "2.11"}),
        phase=Phase.TIMED if is_ok else Phase.VERIFY,
        flags=("uses_nccl",) if Tag.NCCL in tags else (),
        trials=tuple(make_trial(number, is_ok, 4) for number in range(6)),
        timing=make_timing(speedup, BASELINE_US) if is_ok else None,
        floors=RooflineBounds(wire_us=20.0, hbm_us=12.0, flops_us=3.0, latency_us=4.0),
        mechanisms=tuple(
            Mechanism(tag=tag, evidence=Evidence.SOURCE, detail="named") for tag in tags
        ),
    )


def report_of(run: Run, speedup: float) -> Report:
    """Return what the site takes for the result of this run."""
    problem = run.kernel.problem
    size, cost = problem.payload["sizes"][run.size], problem.payload["costs"][run.size]["4"]
    found, gpu = report(Verdict.OK, (), speedup), GPUS.removeprefix("4 x ")
    limits = limits_of(gpu)
    assert limits
    state = GpuState(name=gpu, sm_mhz=1980, memory_mhz=3201, temperature_c=40, power_w=150.0)
    return dataclasses.replace(
        found,
        problem=problem.slug,
        problem_digest=run.problem_digest,
        kernel_digest=run.kernel.source_id,
        setting=setting_of(run),
        trials=tuple(dataclasses.replace(trial, **size) for trial in found.trials),
        floors=RooflineBounds(**dataclasses.asdict(floors(cost, limits))),
        gpus=(state,) * 4,
        phase_s={"timed": 100.0},
    )


def claimant(run: Run) -> Claimant:
    """Return a worker of which the site has heard."""
    token = ApiToken.objects.filter(name=OWNER).first()
    token = token or ApiToken.objects.issue(scope=Scope.WORKER, name=OWNER)[0]
    told = {"isolation": Isolation.BWRAP_CGROUP_SECCOMP.value, "judge_version": JUDGE_VERSION}
    WorkerHost.objects.get_or_create(
        host="host-1",
        queue=run.hardware_id,
        defaults={**told, "hardware": GPUS, "token": token, "last_seen_at": timezone.now()},
    )
    return Claimant(token=token, host="host-1", **told)


def updating(repeats: int, show: Callable[[], object]) -> dict[str, float]:
    """Measure milliseconds of one more result, at another speed than any before it: what the
    incremental update adds to the time in which it is stored, that time, and how long until `show`
    has made the front page."""
    kernels = Kernel.objects.select_related("problem").order_by("pk")[: repeats * 97 : 97]
    added, stored, shown = [], [], []
    for kernel in kernels:
        alone, _ = _storing(kernel, show, is_updated=False)
        whole, until_shown = _storing(kernel, show, is_updated=True)
        added.append(whole - alone)
        stored.append(whole)
        shown.append(until_shown)
    return {
        "incremental update, ms": statistics.median(added),
        "whole finish, ms": statistics.median(stored),
        "finish and next front page, ms": statistics.median(shown),
    }


def _storing(kernel: Any, show: Callable[[], object], *, is_updated: bool) -> tuple[float, float]:
    """Milliseconds until a new result of a kernel is stored, and until the front page is there."""
    names = ("problem_digest", "hardware", "world_size", "size", "dtype", "profile", "device")
    old = Run.objects.filter(kernel=kernel).defer("report_packed")[0]
    run = Run.objects.create(kernel=kernel, **{name: getattr(old, name) for name in names})
    holding = claims.lease(run.pk, claimant(run)).holding
    found = encode(report_of(run, random.lognormvariate(0.0, 0.6)))
    update = summary.update if is_updated else lambda run: None
    began = time.perf_counter()
    with mock.patch.object(summary, "update", update):
        evaluation.finish(run.pk, holding, found)
    done = time.perf_counter()
    show()
    return (done - began) * 1e3, (time.perf_counter() - began) * 1e3
