"""A site full of made-up results, for measurements: what a year of use may leave behind.

Rows are made as the site makes them, in bulk; the summary is then made by the site's own code.
"""

from __future__ import annotations

import dataclasses
import functools
import random
import time
import uuid
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection, transaction
from django.utils import timezone

from evaluator.messages.profile import Evidence, Mechanism, Tag
from evaluator.messages.report import (
    JUDGE_VERSION,
    Environment,
    GpuState,
    Isolation,
    OutputCheck,
    Phase,
    Report,
    Timing,
    Trial,
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
from leaderboard.runs.claims import Claimant
from leaderboard.runs.hosts import register
from leaderboard.runs.report_checks import setting_of
from leaderboard.runs.reports import columns_of

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
        trials=tuple(_trial(number, is_ok) for number in range(6)),
        timing=_timing(speedup) if is_ok else None,
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


def _timing(speedup: float) -> Timing:
    baseline = tuple(BASELINE_US + i % 7 - 3 for i in range(21))
    return Timing(
        kernel_us=BASELINE_US / speedup,
        baseline_us=BASELINE_US,
        speedup=speedup,
        speedup_low=0.97 * speedup,
        speedup_high=1.03 * speedup,
        kernel_single_us=BASELINE_US / speedup,
        baseline_single_us=BASELINE_US,
        empty_us=10.0,
        burst_calls=16,
        warmup_calls=100,
        timed_calls=336,
        kernel_bursts_us=tuple(us / speedup for us in baseline),
        baseline_bursts_us=baseline,
    )


def _trial(number: int, passed: bool) -> Trial:
    checks = tuple(
        OutputCheck(
            rank=rank,
            output="out",
            elements=1 << 20,
            mismatched=0 if passed else 37,
            max_error=0.3 if passed else 12.0,
            verdict=Verdict.OK if passed else Verdict.OUTPUT_MISMATCH,
        )
        for rank in range(4)
    )
    return Trial(trial=number, m=1024, n=1024, note="published shape", checks=checks)
