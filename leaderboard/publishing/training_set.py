"""Reads the kernels that may be trained on: sources, verdicts, times and transcripts of those whose
owner gave them a licence, as a table of a snapshot with a data card."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Exists, OuterRef, QuerySet

from leaderboard.models import Kernel, Moderation, Run, Status, Transcript, Visibility
from leaderboard.models.runs import ruled_on

CARD = "TRAINING.md"
KINDS = {
    **{"run": "text", "kernel": "int", "submission": "int", "model": "text", "harness": "text"},
    **{"attempt": "int", "step": "int", "problem": "int", "slug": "text", "problem_digest": "text"},
    **{"backend": "text", "licence": "text", "digest": "text", "source": "text"},
    **{"hardware": "text", "world_size": "int", "size": "text", "dtype": "text"},
    **{"profile": "text", "placement": "text", "judge_version": "text", "counts": "flag"},
    **{"verdict": "text", "message": "text", "cause": "text", "evidence": "text"},
    **{"kernel_us": "float", "baseline_us": "float", "speedup": "float", "speedup_low": "float"},
    **{"speedup_high": "float", "bound_us": "float", "mechanisms": "texts", "transcript": "text"},
}
OF_KERNEL = {
    "kernel": "kernel_id",
    "submission": "kernel__submission_id",
    "model": "kernel__submission__model__slug",
    "harness": "kernel__submission__harness",
    "attempt": "kernel__attempt",
    "step": "kernel__step",
    "problem": "kernel__problem_id",
    "slug": "kernel__problem__slug",
    "backend": "kernel__backend",
    "licence": "kernel__submission__licence",
    "digest": "kernel__source_id",
    "hardware": "hardware_id",
    "run": "id",
}
TEXT = """# Kernels to train on

{rows} judgements of {kernels} multi-GPU kernels by {submissions} submissions, as of data version
{version}.

* **What**: `training.jsonl.gz` and `training.parquet`, the same rows; a row is one judgement of one
  kernel. docs/data.md of the project says what each column holds.
* **From where**: submissions that are public and undisputed, whose owners gave their kernels a
  licence for this. The default is not to. What was practice, what staff ruled on, and sources that
  the site does not hold are left out.
* **Licences**: by row, in `licence`: {licences}. Owners may change their mind: a newer snapshot
  follows them, an older one stays as it was.
* **Labels**: `verdict` and times are the judge's own, measured beside the PyTorch + NCCL reference;
  only rows with `counts` are of the problem as it stands. `message` and `evidence` may quote what a
  kernel printed, and `transcript` is what its harness handed in: neither was checked.
* **Cautions**: problems and references are public (ParallelKernelBench, Apache-2.0). A model
  trained on this is no longer judged fairly by these problems: say so where you report it. Kernels
  are untrusted code: run them in a sandbox.
"""


def training_runs() -> QuerySet[Run]:
    """Return the judgements of kernels that may be given away."""
    of = "kernel__submission__"
    allowed = {
        f"{of}visibility": Visibility.PUBLIC,
        f"{of}moderation": Moderation.ACCEPTED,
        f"{of}is_practice": False,
        f"{of}withholds_source": False,
        "kernel__source__packed__isnull": False,
        "status": Status.DONE,
    }
    return Run.objects.filter(**allowed).exclude(**{f"{of}licence": ""}).exclude(ruled_on())


def rows() -> Iterator[tuple[object, ...]]:
    """Yield the rows; the transcript of an attempt stands beside its last step alone."""
    later = Kernel.objects.filter(
        submission=OuterRef("kernel__submission"),
        problem=OuterRef("kernel__problem"),
        attempt=OuterRef("kernel__attempt"),
        step__gt=OuterRef("kernel__step"),
    )
    counted = Exists(Run.objects.counted().filter(pk=OuterRef("pk")))
    found = training_runs().select_related(
        "kernel__source", "kernel__submission__model", "kernel__problem"
    )
    found = found.defer("report_packed", "kernel__problem__payload")
    told = found.annotate(counts=counted, has_later=Exists(later))
    for run in told.order_by("kernel_id", "created_at", "pk").iterator(chunk_size=100):
        yield tuple(_value(run, name) for name in KINDS)


def _value(run: Run, name: str) -> object:
    if name == "source":
        return run.kernel.source.text
    if name == "transcript":
        return None if vars(run)["has_later"] else _transcript(run)
    value: object = run
    for part in OF_KERNEL.get(name, name).split("__"):
        value = getattr(value, part)
    return value


def _transcript(run: Run) -> str | None:
    whose = {"submission": run.kernel.submission_id, "problem": run.kernel.problem_id}
    found = Transcript.objects.filter(attempt=run.kernel.attempt, **whose).first()
    return found.text if found else None


def card(version: int) -> str:
    """Return the data card."""
    found = training_runs().order_by()
    names = found.values_list("kernel__submission__licence", flat=True).distinct()
    return TEXT.format(
        rows=found.count(),
        kernels=found.values("kernel__source").distinct().count(),
        submissions=found.values("kernel__submission").distinct().count(),
        version=version,
        licences=", ".join(sorted(names)) or "none yet",
    )
