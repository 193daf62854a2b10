"""Packs and serves what repeats one run, as a ZIP with the same bytes whoever asks for it."""

from __future__ import annotations

import functools
import gzip
import io
import json
import uuid
import zipfile
from collections.abc import Callable
from pathlib import Path

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from leaderboard.delivery.pages import Stored, answer_public
from leaderboard.delivery.readers import may_see
from leaderboard.kit.json_types import JsonObject, Report
from leaderboard.kit.visible import visible
from leaderboard.models import Run, Source, Visibility
from leaderboard.read_model.run_lines import command_of
from leaderboard.read_model.withholding import WITHHELD, closed_to, hushed
from leaderboard.run_pages.kernel import runs_of, shown_run, uses_of, with_report
from leaderboard.run_pages.reproduce import found_in_words, job_of, setting_in_words
from leaderboard.run_pages.run_figures import run_called

COMPARE = Path(__file__).parent / "bundled" / "compare.py"
# ZIP's own epoch: a time of ours would make other bytes of the same content.
EPOCH = (1980, 1, 1, 0, 0, 0)
MOST_REPORT_BYTES = 16 << 20


def folder_of(run: Run) -> str:
    return f"pkb-{run.kernel.problem.slug}-{run.kernel.source_id[:10]}"


def bundle(run: Run, source: str | None, report: Report | None) -> bytes:
    """Return a ZIP of `kernel.py`, where it may be read here, and what was asked and found of it. A
    report that is huge, which only timelines make it, goes without them."""
    files = {
        "README.md": readme(run, is_judged=report is not None, has_source=source is not None),
        **({} if source is None else {"kernel.py": source}),
        "job.json": _json(job_of(run)),
        "compare.py": COMPARE.read_text(),
    }
    if report is not None:
        whole = _json(report)
        short = len(whole.encode()) > MOST_REPORT_BYTES
        files["report.json"] = _json({**report, "timelines": []}) if short else whole
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, text in sorted(files.items()):
            entry = zipfile.ZipInfo(f"{folder_of(run)}/{name}", EPOCH)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, text.encode())
    return made.getvalue()


def readme(run: Run, *, is_judged: bool, has_source: bool = True) -> str:
    kernel = run.kernel
    expected = f"Expected: **{found_in_words(run)}**." if is_judged else "It had not been judged."
    lines = [
        f"# {kernel.problem}: kernel {kernel.source_id[:12]}",
        "",
        f"By {_plain(kernel.submission.model.name)} ({kernel.submission.harness}),"
        f" attempt {kernel.attempt}, step {kernel.step}. Run {run.id}.",
        "",
        f"{expected} On {setting_in_words(run)}.",
        "",
        "kernel.py is a program that somebody handed in: judge it with this project's judge, which",
        "runs it in a sandbox, or read it before you run it.",
        "",
        "## Repeat it",
        "",
        "In a clone of the PKB Leaderboard, on the hardware named above, with this kernel.py:",
        "",
        f"    {command_of(run)}",
        "",
        "or let `python <this folder>/compare.py` judge it and say how the result differs.",
        "",
        "## Files",
        "",
        _source_line(kernel.source, has_source=has_source),
        "- `job.json`: what the judge was asked",
        *(["- `report.json`: everything that it found"] if is_judged else []),
        "- `compare.py`: judges again and compares; Python's standard library only",
        "",
    ]
    return "\n".join(lines)


def _source_line(source: Source, *, has_source: bool) -> str:
    if has_source:
        return f"- `kernel.py`: the source, SHA-256 {source.digest}"
    if source.is_held:
        size = f"{source.size_bytes} bytes, SHA-256 {source.digest}"
        return f"- `kernel.py` is not here, {WITHHELD}: {size}"
    place = f"{_plain(source.path)} at {_plain(source.commit)} of {_plain(source.repository)}"
    return f"- `kernel.py` is not held here: fetch {place}, SHA-256 {source.digest}"


def _plain(name: str) -> str:
    """Return a text for Markdown: one line, without what starts a link, an image or markup."""
    return "".join(
        " " if c in "\n\t" else f"\\{c}" if c in r"\`*_[]<>#!|" else c for c in visible(name)
    )


def _json(value: JsonObject) -> str:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


ZIP = "application/zip"


@require_safe
def of_kernel(request: HttpRequest, digest: str) -> HttpResponse:
    """Serve the run that the kernel's page shows, or the newest where none has a verdict."""

    def found() -> Run | None:
        uses, _ = uses_of(request, digest)
        runs = runs_of(uses)
        return with_report(shown_run(runs) or next(iter(runs), None))

    return _answer(request, f"pkb-kernel-{digest[:12]}", found)


@require_safe
def of_run(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    return _answer(request, f"pkb-run-{str(run_id)[:8]}", lambda: run_called(str(run_id)))


def _answer(request: HttpRequest, name: str, found: Callable[[], Run | None]) -> HttpResponse:
    make = functools.partial(_make, request, found)
    response = answer_public(request, f"zip {request.path}", make)
    response["Content-Disposition"] = f'attachment; filename="{name}.zip"'
    return response


def _make(
    request: HttpRequest, found: Callable[[], Run | None], *, etag: str
) -> Stored | HttpResponse:
    run = found()
    if run is None:
        raise Http404
    submission = run.kernel.submission
    private = submission.visibility == Visibility.PRIVATE
    if private and not may_see(request, submission):
        raise Http404
    is_closed = bool(closed_to(request.user, [run.kernel]))
    body = bundle(
        run,
        None if is_closed else run.kernel.source.text,
        hushed(run).report if is_closed else run.report,
    )
    if private or submission.withholds_source:
        return HttpResponse(body, content_type=ZIP, headers={"Cache-Control": "private, no-store"})
    return Stored(body=gzip.compress(body, 1, mtime=0), content_type=ZIP, etag=etag)
