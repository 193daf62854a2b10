"""Reads what names say in a tree of kernels as PKB's generator writes and publishes it:

`solutions_<backend>_<precision>_<hardware>_<provider>_<model>/<number>_<slug>_<backend>.py`, or
`solutions_<backend>/` where an agent wrote them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath, PurePosixPath

from leaderboard.models import Problem
from leaderboard.models.choices import BACKENDS

ALIASES = {"pk": "parallelkittens"}
BACKEND = "|".join([*(value for value, _ in BACKENDS), *ALIASES])
_DTYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
_VENDORS = {
    **{"google": "Google", "openai": "OpenAI", "anthropic": "Anthropic"},
    **{"zai-org": "Z.ai", "deepseek-ai": "DeepSeek"},
}
# Runs other people's models, whose names it begins with their organisation.
_HOST = "together"
_TREE = re.compile(
    rf"solutions_(?P<backend>{BACKEND})"
    rf"(?:_(?P<precision>{'|'.join(_DTYPES)})_(?:none|(?P<gpu>[a-z]\w{{0,15}}?)_(?P<count>\d{{1,3}}))"
    r"_(?P<provider>[a-z][a-z0-9-]{0,31})_(?P<model>[A-Za-z0-9][\w.\-]{0,79}))?",
    re.ASCII,
)

# The trees were published under names and numbers that PKB's own problems have left behind.
_FIRST_MOVED = 33
_RENAMED = {
    "11_gemm_allgather_AT": "allgather_gemm_AT",
    "12_gemm_allgather": "allgather_gemm",
    "14_gemm_allscatter": "gemm_allgather",
    "18_rms_norm": "tp_rms_norm",
}
_WITHDRAWN = {"46_fsdp_adamw_sharded", "47_fsdp_adamw_sharded"}
# And for other forms of these tasks, by today's slug: in what they differed.
_NO_GROUP = "which returned x as it was without a group, where today's takes all ranks"
_OLDER_TASKS = {
    "moe_token_preprocess": "which returned the split sizes as lists, not as tensors",
    "gnn_neighbor_sampling": "which sampled neighbours at random, where today's takes the first",
    "ulysses_gather_seq_scatter_heads": _NO_GROUP,
    "ulysses_gather_heads_scatter_seq": _NO_GROUP,
}


@dataclass(frozen=True, kw_only=True)
class Tree:
    """Holds what a folder's name says of its kernels, where their uploader says nothing else."""

    backend: str
    dtype: str | None = None
    hardware: str | None = None
    world_size: int | None = None
    vendor: str | None = None
    model: str | None = None


def backend_called(name: str) -> str:
    """Return the backend that a published name stands for: `pk` is parallelkittens."""
    return ALIASES.get(name, name)


def tree_of(path: PurePosixPath) -> Tree | None:
    """Return the innermost tree that a file lies in."""
    found = folder_called(path, _TREE)
    return _read(found) if found else None


def folder_called(path: PurePath, name: re.Pattern[str]) -> re.Match[str] | None:
    """Return the innermost folder around a file that is called so."""
    found = [match for part in path.parts[:-1] if (match := name.fullmatch(part))]
    return found[-1] if found else None


def _read(name: re.Match[str]) -> Tree:
    backend = backend_called(name["backend"])
    if name["model"] is None:
        return Tree(backend=backend)
    vendor, model = name["provider"], name["model"]
    if vendor == _HOST and "_" in model:
        vendor, _, model = model.partition("_")
    return Tree(
        backend=backend,
        dtype=_DTYPES[name["precision"]],
        hardware=f"{name['gpu']}x{name['count']}" if name["gpu"] else None,
        world_size=int(name["count"]) if name["gpu"] else None,
        vendor=_VENDORS.get(vendor, vendor),
        model=model,
    )


def published_number(number: int) -> int:
    """Return a problem's number in published trees: there was one more before the 33rd."""
    return number + 1 if number >= _FIRST_MOVED else number


def slug_today(number: int, slug: str) -> str:
    """Return today's slug of the problem that a published tree calls `<number>_<slug>`."""
    return _RENAMED.get(f"{number}_{slug}", slug)


def is_name_of(number: int, slug: str, problem: Problem) -> bool:
    """Return True if `<number>_<slug>` is what a problem is called today, or in published trees."""
    if (number, slug) == (problem.number, problem.slug):
        return True
    is_published = number == published_number(problem.number)
    return is_published and slug_today(number, slug) == problem.slug


def is_withdrawn(number: int, slug: str) -> bool:
    """Return True if PKB published kernels for this problem and has withdrawn it since."""
    return f"{number}_{slug}" in _WITHDRAWN


def older_task(slug: str) -> str:
    """Return how the task differed that the published trees answer for a problem, by today's slug;
    empty where it is today's."""
    return _OLDER_TASKS.get(slug, "")
