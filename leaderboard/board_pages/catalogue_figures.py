"""Draws what the problems are of: parts of models by kinds of parallelism, and codebases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from django.http import HttpRequest

from leaderboard.board_pages.taxonomy import CATEGORY_PARAMETERS, category_query
from leaderboard.delivery.pages import Crumb, Table, canonical_query
from leaderboard.figures.charts import categories as charts
from leaderboard.figures.findings import said
from leaderboard.figures.frame import Drawn, figure, framed
from leaderboard.kit.links import url, with_query
from leaderboard.read_model.scopes import BoardScope, Named

# Words in a problem's slug by which it is of a part of a model; the first that fits counts.
BLOCKS: Mapping[str, tuple[str, ...]] = {
    "Mixture of experts": ("moe", "load_balancing"),
    "Attention": ("attention", "ulysses", "deltanet", "rope", "hyena"),
    "Norm": ("layernorm", "rmsnorm", "rms_norm"),
    "Embedding and vocabulary": ("embedding", "vocab", "kjt", "gemv"),
    "MLP and matrix products": ("gemm", "fsdp_and_tp"),
    "Optimizer and gradients": (
        *("grad_norm", "ddp", "zero1", "zero2", "adam", "grad", "fsdp_step", "kalman", "muon"),
        "fp8_allgather_params",
    ),
    "Graphs": ("gnn",),
    "Convolutions and transforms": ("conv", "rfft", "vae"),
    "Losses and search": ("loss", "knn", "sinkhorn", "iou", "sort", "splatting"),
    "Quantisation": ("fp8",),
}
BARE = "Bare collectives"
OTHERS = "Others"
MOST_SOURCES = 40


@figure(
    "problem-map",
    "What problems are of",
    "Number of problems by the part of a model, as we read their names, and the kind of"
    " parallelism.",
    tall=True,
)
def problem_map(request: HttpRequest) -> Drawn:
    found = category_query(request).scope
    titles = list(found.titles)
    counts = Counter((block_of(one), one.category) for one in found.every)
    blocks = [name for name in (*BLOCKS, BARE, OTHERS) if any(b == name for b, _ in counts)]
    rows = [[counts[name, slug] for slug in titles] for name in blocks]
    heads = list(found.titles.values())
    table = [[name, *row] for name, row in zip(blocks, rows, strict=True)]
    return Drawn(
        spec=charts.counts(blocks, heads, rows),
        table=Table(columns=("Part of a model", *heads), rows=table),
        crumbs=crumbs(""),
        title=map_title(found.every),
    )


@figure(
    "sources",
    "Where problems come from",
    "Problems of each codebase: solved in this setting, and not solved, tried or not.",
    *CATEGORY_PARAMETERS,
    tall=True,
)
def sources(request: HttpRequest) -> Drawn:
    query = category_query(request)
    rows = by_source(query.scope.every)
    return Drawn(
        spec=charts.coverage(rows),
        table=Table(columns=("Codebase", "Solved", "Not solved or not scored"), rows=rows),
        crumbs=crumbs(canonical_query(request, CATEGORY_PARAMETERS)),
        under=str(query.setting or ""),
        title=sources_title(query.scope.every),
    )


def crumbs(address: str) -> tuple[Crumb, ...]:
    page = with_query(url("categories"), address)
    return (Crumb(text="Leaderboard", url=url("board")), Crumb(text="Categories", url=page))


def block_of(problem: Named) -> str:
    words = problem.slug
    if problem.category == "collective_primitive":
        return BARE
    return next((name for name, own in BLOCKS.items() if any(w in words for w in own)), OTHERS)


def by_source(problems: Iterable[Named]) -> list[list[object]]:
    """Return each codebase with its problems that were solved, and the others."""
    every, solved = Counter[str](), Counter[str]()
    for one in problems:
        if one.source:
            every[one.source] += 1
            solved[one.source] += bool(one.scored and one.solved)
    ordered: Sequence[tuple[str, int]] = sorted(every.items(), key=lambda pair: (-pair[1], pair[0]))
    return [[name, solved[name], n - solved[name]] for name, n in ordered[:MOST_SOURCES]]


def map_title(problems: Sequence[Named]) -> str:
    """Return the title with the part of a model that most problems are of."""
    parts = Counter(block_of(one) for one in problems if block_of(one) not in (BARE, OTHERS))
    (name, count), *_ = parts.most_common(1) or [("", 0)]
    finding = f"most, {count} of {len(problems)}, are of {name.lower()}" if count else ""
    return said(problem_map.title, finding)


def sources_title(problems: Sequence[Named]) -> str:
    """Return the title with the codebase of most problems, and how many of all are solved."""
    (name, many, solved), *_ = [
        (str(row[0]), sum(map(int, map(str, row[1:]))), row[1]) for row in by_source(problems)
    ] or [("", 0, 0)]
    finding = f"most, {many}, from {name}, of which {solved} are solved" if many else ""
    return said(sources.title, finding)


def catalogue_frames(found: BoardScope, address: str) -> list[dict[str, object]]:
    """Return the frames of the figures of a catalogue that has problems."""
    if not found.every:
        return []
    return [
        framed(problem_map, "", title=map_title(found.every)),
        framed(sources, address, title=sources_title(found.every)),
    ]
