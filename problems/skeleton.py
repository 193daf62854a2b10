"""Start a new problem from a text that runs; `check` says what is still missing."""

from __future__ import annotations

import re
from pathlib import Path

import problems

TEXT = '''\
"""{title}: say here in one line what it is."""

import torch
import torch.distributed as dist

from problems.collectives import all_reduce_bytes
from problems.context import RankContext
from problems.spec import Cost, Dims, Problem, tolerances

problem = Problem(
    number={number},
    title="{title}",
    source="",
    domain="",
    summary="",
    statement="",
    outputs=("out",),
    tolerances=tolerances(float32=1e-6, bfloat16=2.5e-2, float16=3e-3, rms={{"bfloat16": 0.092}}),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    return Dims(m=m, n=n)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    return {{"tensor": ctx.randn(d.m, d.n)}}


def reference(tensor: torch.Tensor) -> torch.Tensor:
    out = tensor.clone(memory_format=torch.contiguous_format)
    dist.all_reduce(out)
    return out


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    full = d.m * d.n
    return Cost(
        wire_bytes=all_reduce_bytes(full * itemsize, world_size),
        flops=full,
        hbm_bytes=2 * full * itemsize,
    )
'''


def create(category: str, slug: str) -> Path:
    """Write the file of a new problem, under the next free number, and return its path.

    Raises ValueError for an unknown category, and for a slug that is taken or no module name.
    """
    if category not in problems.CATEGORIES:
        raise ValueError(f"no category {category!r}: use {', '.join(problems.CATEGORIES)}")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", slug):
        raise ValueError(f"{slug!r} is no module name: use lower case, digits and underscores")
    taken = {problems.load(name).slug for name in problems.names()}
    if slug in taken:
        raise ValueError(f"there is a problem called {slug} already")
    number = 1 + max(problems.load(name).problem.number for name in problems.names())
    folder = problems.FOLDER / category
    folder.mkdir(exist_ok=True)
    (folder / "__init__.py").touch()
    path = folder / f"{slug}.py"
    title = slug.replace("_", " ").capitalize()
    path.write_text(TEXT.format(title=title, number=number))
    return path
