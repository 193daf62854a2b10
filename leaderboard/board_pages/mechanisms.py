"""Shows by which mechanisms correct kernels move their bytes: how often, how fast, where, whose."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from django.http import HttpRequest
from django.utils.safestring import SafeString

from leaderboard.board_pages.mechanism_kernels import (
    PARAMETERS,
    Right,
    card_of,
    chosen,
    fastest,
    finding,
    speed_frame,
    tags_of,
)
from leaderboard.board_pages.profiles import named
from leaderboard.delivery import cells, citing
from leaderboard.delivery.pages import Crumb, Page, Table, canonical_query, public_page
from leaderboard.kit.links import kernel_at, url, with_query
from leaderboard.metrics.mechanisms import NCCL, mechanism_name
from leaderboard.read_model.boards import Cell
from leaderboard.read_model.filters import count_phrase
from leaderboard.read_model.published_claims import published
from leaderboard.read_model.setting import machine_in_words, tells_times

COLUMNS = (
    *("submission", "model", "harness", "problem", "category", "mechanisms", "nccl"),
    *("speedup", "speedup_low", "run"),
)


class MechanismSummary(NamedTuple):
    """Holds a number of kernels with the address of their rows of the matrix, how many problems
    they solve, their median speedup and the share surely faster than the reference."""

    kernels: int
    url: str
    problems: int
    speedup: float | None
    faster: float | None


@public_page(*PARAMETERS)
def mechanisms(request: HttpRequest) -> Page:
    setting, controls, found, right = chosen(request)
    is_timed = tells_times(setting)
    tags = [tag for tag in tags_of(right) if is_timed or tag != NCCL]
    where, claims = canonical_query(request, PARAMETERS), published(category=None)
    records = [record_of(one) for one in right]
    return Page(
        template="mechanisms.html",
        section="board",
        context={
            "page_url": url("mechanisms"),
            "filters": controls,
            "said": f"{count_phrase(len(right), 'correct kernel')} · {setting}" if setting else "",
            "is_timed": is_timed,
            "finding": finding(right),
            "figure": speed_frame(right, where),
            "cite": citing.of_page(request, with_query(url("mechanisms"), where)),
            "names": [mechanism_name(tag) for tag in tags],
            "rows": [_row(right, tag, where) for tag in tags],
            "is_house": all(one.entry.house for one in right),
            "published": claims[0].publication_says.get("mechanisms", "") if claims else "",
            "right": len(right),
            "naming_nccl": sum(NCCL in one.cell.mechanisms for one in right),
            "unknown": sum(not one.cell.mechanisms for one in right),
            "categories": list(_by_category(right, tags, found.titles, where)),
            "submissions": list(_by_submission(right, tags)),
        },
        data={"setting": setting and vars(setting), "kernels": records},
        table=Table.of(COLUMNS, records),
        card=lambda: card_of(right, machine_in_words(setting) if setting else ""),
        crumbs=(Crumb(text="Leaderboard", url=url("board")), Crumb(text="Mechanisms")),
    )


def _row(right: Sequence[Right], tag: str, where: str) -> dict[str, object]:
    return {
        "name": mechanism_name(tag),
        "url": f"{url('matrix')}?mechanism={tag}{f'&{where}' if where else ''}",
        "cells": cells.joined(_cells(right, tag)),
        "fastest": _fastest(right, tag),
    }


def _cells(right: Sequence[Right], tag: str) -> Iterator[SafeString]:
    own = [one.cell for one in right if tag in one.cell.mechanisms]
    yield cells.count_cell(len(own))
    yield cells.share_cell(len(own) / len(right))
    yield cells.count_cell(len({cell.problem for cell in own}))
    median, faster = _speeds(own)
    if median is not None:
        yield cells.ratio_cell(median)
        yield cells.share_cell(faster)


def _fastest(right: Sequence[Right], tag: str) -> dict[str, object] | None:
    """Return the fastest kernel that uses a mechanism; None where none was timed."""
    found = fastest(one for one in right if tag in one.cell.mechanisms)
    if found is None:
        return None
    cell = found.cell
    return {
        "url": kernel_at(cell.kernel, cell.run),
        "speedup": cell.best_speedup,
        "problem": cell.problem,
        "model": found.entry.model,
    }


def _speeds(own: Iterable[Cell]) -> tuple[float | None, float | None]:
    """Return the median speedup of these cells, and the share surely above 1; None untimed."""
    timed = [cell for cell in own if cell.best_speedup is not None]
    if not timed:
        return None, None
    faster = sum((cell.best_low or 0.0) > 1 for cell in timed) / len(timed)
    return statistics.median(cell.best_speedup or 0.0 for cell in timed), faster


def _by_category(
    right: Sequence[Right], tags: Sequence[str], titles: dict[str, str], where: str
) -> Iterator[dict[str, object]]:
    """Yield the categories with correct kernels; each number leads to those kernels."""
    tail = f"&{where}" if where else ""
    for slug, title in titles.items():
        own = [one.cell for one in right if one.cell.category == slug]
        using = {tag: [cell for cell in own if tag in cell.mechanisms] for tag in tags}
        if own:
            yield {
                "title": title,
                "url": url("category", slug),
                "right": len(own),
                "parts": [
                    MechanismSummary(
                        len(users),
                        f"{url('matrix')}?category={slug}&mechanism={tag}{tail}",
                        len({cell.problem for cell in users}),
                        *_speeds(users),
                    )
                    for tag, users in using.items()
                ],
            }


def _by_submission(right: Sequence[Right], tags: Sequence[str]) -> Iterator[dict[str, object]]:
    """Yield each submission with how many of its correct kernels use what."""
    groups: dict[int | None, list[Right]] = {}
    for one in right:
        groups.setdefault(one.entry.submission, []).append(one)
    for own in groups.values():
        entry = own[0].entry
        counts = Counter(tag for one in own for tag in one.cell.mechanisms)
        yield {
            "model": entry.model,
            "named": named(entry),
            "url": entry.url,
            "cells": cells.joined(
                [cells.count_cell(len(own)), *(cells.count_cell(counts[tag]) for tag in tags)]
            ),
        }


def record_of(one: Right) -> dict[str, object]:
    """Return a row of the twins."""
    entry, cell = one
    whose = (entry.submission, entry.model, entry.harness, cell.problem, cell.category)
    how = (" ".join(cell.mechanisms), cell.nccl, cell.best_speedup, cell.best_low, cell.run)
    return dict(zip(COLUMNS, (*whose, *how), strict=True))
