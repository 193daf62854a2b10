"""Shows two kernels side by side, down to the lines in which they differ."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence

from django.http import Http404, HttpRequest

from leaderboard.delivery.pages import BadQuery, Crumb, Page, Table, public_page
from leaderboard.kit.diff import compared
from leaderboard.kit.json_types import JsonDict
from leaderboard.kit.links import kernel_at, url
from leaderboard.metrics.verdicts import state, verdict_words
from leaderboard.model_pages.side_by_side import LETTERS, ComparedOutcome, are_apart
from leaderboard.models import Kernel, Run, Source, Visibility
from leaderboard.read_model.boards import SETTING_FIELDS, Setting
from leaderboard.read_model.filters import setting_query
from leaderboard.read_model.withholding import closed_to, disclosed, withheld_by_all

DIGEST = re.compile(r"[0-9a-f]{64}")
MOST_RUNS = 400
TIMES = ("kernel_us", "baseline_us", "speedup", "speedup_low", "speedup_high", "utilisation")
RECORD_COLUMNS = (
    *("kernel", "problem", "model", "submission", "backend", "run", "verdict"),
    *(*TIMES, "mechanisms", "setting"),
)


@public_page("kernels", "run")
def kernels(request: HttpRequest) -> Page:
    digests = asked_for(request)
    asked = run_of(request, digests)
    every = uses_by_digest(digests)
    uses = {digest: use_of(found, asked) for digest, found in every.items()}
    known = [use for own in every.values() for use in disclosed(own)]
    closed = closed_to(request.user, known)
    readable = Source.objects.filter(pk__in=set(digests) - closed)
    texts = {source.pk: source.text for source in readable}
    if asked and asked.kernel_id not in {use.pk for use in uses.values()}:
        asked = None
    runs = comparable(digests, newest_runs(list(uses.values())), asked)
    sides = [
        _side(letter, uses[digest], run)
        for letter, digest, run in zip(LETTERS, digests, runs, strict=False)
    ]
    records = [{name: side[name] for name in RECORD_COLUMNS} for side in sides]
    first, other = map(texts.get, digests)
    same_setting = len({str(record["setting"]) for record in records}) == 1
    return Page(
        template="compare_kernels.html",
        section="compare",
        context={
            "sides": sides,
            "same_problem": len({use.problem_id for use in uses.values()}) == 1,
            "same_setting": same_setting,
            "is_asked": asked is not None,
            "ratio": ratio_of(*runs) if same_setting else None,
            "withheld": bool(closed),
            "diff": None if first is None or other is None else compared(first, other),
        },
        data={"kernels": records},
        table=Table(columns=RECORD_COLUMNS, rows=[list(record.values()) for record in records]),
        varies=bool(withheld_by_all(known)),
        crumbs=(
            Crumb(text="Leaderboard", url=url("board")),
            Crumb(text="Compare", url=url("compare")),
            Crumb(text="Kernels"),
        ),
    )


def asked_for(request: HttpRequest) -> list[str]:
    value = request.GET.get("kernels", "").lower()
    digests = value.split(",")
    if len(set(digests)) != 2 or not all(DIGEST.fullmatch(digest) for digest in digests):
        raise BadQuery("kernels", value, ["two digests of 64 digits with a comma between them"])
    return digests


def uses_by_digest(digests: Sequence[str]) -> dict[str, list[Kernel]]:
    """Return the uses of each kernel by its digest, private submissions left out whoever asks."""
    known = Kernel.objects.exclude(submission__visibility=Visibility.PRIVATE)
    found: dict[str, list[Kernel]] = {digest: [] for digest in digests}
    rows = known.filter(source__in=digests).select_related("problem", "submission__model")
    for use in rows.defer("problem__payload").order_by("submission_id", "attempt", "step"):
        found[use.source_id].append(use)
    return found


def run_of(request: HttpRequest, digests: Sequence[str]) -> Run | None:
    """Return the run, of one of the two kernels, that a link was made for; None without one."""
    try:
        key = uuid.UUID(request.GET.get("run", ""))
    except ValueError:
        return None
    runs = Run.objects.counted().filter(pk=key, kernel__source__in=digests)
    return runs.select_related("kernel").defer("report_packed").first()


def use_of(uses: Sequence[Kernel], asked: Run | None) -> Kernel:
    """Return the use of the run asked for, or else the first. An unlisted use is not disclosed
    where there is a public one. Raises Http404 without uses."""
    if not uses:
        raise Http404
    shown = disclosed(uses)
    own = (use for use in shown if asked and use.pk == asked.kernel_id)
    return next(own, shown[0])


def newest_runs(uses: Sequence[Kernel]) -> list[Run]:
    runs = Run.objects.counted().filter(kernel__in=uses).select_related("kernel")
    return list(runs.defer("report_packed").order_by("-created_at", "-id")[:MOST_RUNS])


def comparable(digests: Sequence[str], runs: Sequence[Run], asked: Run | None) -> list[Run | None]:
    """Return a run of each kernel: the one asked for, and the newest of the other in its setting;
    without one, the newest of each in the newest setting that both were judged in. Else the
    newest."""
    runs = [asked, *runs] if asked else runs
    by_digest = {digest: [r for r in runs if r.kernel.source_id == digest] for digest in digests}
    settings = [{setting_of(run) for run in own} for own in by_digest.values()]
    common = set.intersection(*settings)
    met = next((setting_of(run) for run in runs if setting_of(run) in common), None)
    where = setting_of(asked) if asked else met
    return [
        next((run for run in own if where == setting_of(run)), next(iter(own), None))
        for own in by_digest.values()
    ]


def setting_of(run: Run) -> Setting:
    return Setting(**{name: getattr(run, name) for name in SETTING_FIELDS})


def ratio_of(first: Run | None, other: Run | None) -> JsonDict | None:
    """Return how much faster the first is, as the ratio of both speedups; None unless both are
    right."""
    if not (first and other and first.speedup and other.speedup):
        return None
    if {first.verdict, other.verdict} != {"ok"}:
        return None
    outcomes = [
        ComparedOutcome(
            verdict="ok", run="", speedup=r.speedup, low=r.speedup_low, high=r.speedup_high
        )
        for r in (first, other)
    ]
    return {"value": first.speedup / other.speedup, "is_apart": are_apart(*outcomes)}


def _verdict(run: Run) -> str:
    return verdict_words(run.verdict or "", is_timed=run.is_timed)


def _side(letter: str, use: Kernel, run: Run | None) -> JsonDict:
    problem = use.problem
    return {
        "letter": letter.upper(),
        "kernel": use.source_id,
        "url": kernel_at(use.source_id, run and run.pk),
        "problem": str(problem),
        "problem_url": url("problem", problem.number, problem.slug),
        "model": use.submission.model.name,
        "submission": use.submission_id,
        "submission_url": use.submission.get_absolute_url()
        + (f"?{setting_query(setting_of(run))}" if run else ""),
        "backend": use.backend,
        "run": str(run.pk) if run else None,
        "run_url": run.get_absolute_url() if run else None,
        "verdict": run.verdict if run else None,
        "verdict_text": verdict_words(run.verdict or "", is_timed=run.is_timed)
        if run
        else "not judged",
        "state": state(run.verdict if run else None),
        **{name: getattr(run, name) if run else None for name in TIMES},
        "mechanisms": list(run.mechanisms) if run else [],
        "setting": str(setting_of(run)) if run else None,
    }
