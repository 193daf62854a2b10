"""Shows the text of a kernel, where it may be read here, and in what it differs from another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from django.http import HttpRequest

from evaluator.messages.source_files import parts_of
from leaderboard.kit.diff import Diff
from leaderboard.kit.highlighting import MOST_COLOURED, Marks, highlighted
from leaderboard.models import Kernel, Source
from leaderboard.run_pages.diff_base import DiffBase, differences, requested_base
from leaderboard.run_pages.lineage import Sibling


def against(
    request: HttpRequest, use: Kernel, source: str | None, siblings: Sequence[Sibling]
) -> tuple[DiffBase | None, Diff | None]:
    """Return what the address wants to see a source beside, and how they differ; nothing of a
    source that is not held, or withheld."""
    base = None if source is None else requested_base(request, use, siblings)
    return base, differences(base, source) if base and source is not None else None


def shown_source(stored: Source, text: str | None, marks: Marks) -> dict[str, object]:
    """Return the context of `_source.html`; the text is None where it cannot be read here."""
    if text is None:
        return {"elsewhere": stored.elsewhere, "size_bytes": stored.size_bytes}
    lines = text.count("\n") + (not text.endswith("\n"))
    marked = [(line, said) for line, said in marks.items() if line <= lines]
    return {
        "elsewhere": None,
        "files": [*_files(text, marks)],
        "lines": lines,
        "marks": [{"line": line, "says": ", ".join(said)} for line, said in marked],
    }


def _files(text: str, marks: Marks) -> Iterator[dict[str, object]]:
    """Yield each file of a kernel as HTML; lines keep their numbers in the whole text."""
    parts, left = parts_of(text), MOST_COLOURED
    if not parts:
        yield {"path": None, "line": 1, "html": highlighted(text, marks)}
    for part in parts:
        left -= len(part.text)
        suffix = PurePosixPath(part.path).suffix if left > 0 else ""
        lines = part.text.count("\n")
        own = {line: said for line, said in marks.items() if 0 <= line - part.line < lines}
        html = highlighted(part.text, own, suffix=suffix, first=part.line)
        yield {"path": part.path, "line": part.line, "lines": lines, "html": html}


def choices(request: HttpRequest, siblings: Sequence[Sibling], run: str) -> dict[str, object]:
    """Return what the form that asks for differences begins with."""
    asked, has_previous = request.GET.get("diff", ""), not siblings[0].is_here
    return {"asked": asked, "has_previous": has_previous, "run": run}
