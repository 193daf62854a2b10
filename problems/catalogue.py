"""Export the problem set as one JSON document, which the site shows and stores."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import problems
from problems import ProblemModule
from problems.environment import imports, of_release
from problems.limits import compared
from problems.sources import behaviour, reference_source
from problems.timed_arguments import timed_arguments
from problems.timed_work import work_share

PATH = Path(__file__).parents[1] / "fixtures" / "problems.json"
# What `pkb` carries of it.
SHORT_PATH = Path(__file__).parents[1] / "evaluator" / "client" / "problems.json"
IMPORTS_PATH = SHORT_PATH.with_name("imports.json")
VERSION = 1
COST_ITEMSIZE = 2  # bfloat16


def catalogue() -> dict[str, Any]:
    """Return the document of every problem, ready for JSON. What the last audit found stays in its
    own file."""
    modules = [problems.load(name) for name in problems.names()]
    return {"version": VERSION, "problems": [_entry(module) for module in modules]}


def stored() -> dict[str, Any]:
    """Read the exported document; raises FileNotFoundError before the first export."""
    document: dict[str, Any] = json.loads(PATH.read_text())
    return document


def unexported(names: Sequence[str]) -> list[str]:
    """Return the slugs of those problems whose entry in the exported document is not today's."""
    modules = [problems.load(name) for name in names]
    exported = {one["slug"]: one for one in stored()["problems"]} if PATH.exists() else {}
    return [module.slug for module in modules if exported.get(module.slug) != _entry(module)]


def write(document: dict[str, Any]) -> None:
    PATH.parent.mkdir(exist_ok=True)
    PATH.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    SHORT_PATH.write_text(short(document))
    IMPORTS_PATH.write_text(json.dumps(importable()) + "\n")


def importable() -> list[str]:
    """Return the outermost modules that kernels may import on some host of the release, besides
    Python's own."""
    found = {name for device in ("cpu", "cuda") for name in imports(of_release(device))}
    return sorted({name.partition(".")[0] for name in found} | {"utils"})


def short(document: dict[str, Any]) -> str:
    """Return as JSON, a line a problem, what a kernel of each is given and can be judged on."""
    lines = [json.dumps(_in_short(entry)) for entry in document["problems"]]
    return "[\n" + ",\n".join(lines) + "\n]\n"


def _in_short(entry: Mapping[str, Any]) -> dict[str, Any]:
    parts = ("name", "annotation", "default")
    return {
        **{name: entry[name] for name in ("number", "slug", "title", "world_sizes", "ranked_from")},
        "parameters": [[each[part] for part in parts] for each in entry["signature"]],
        "sizes": list(entry["sizes"]),
        "dtypes": list(entry["tolerances"]),
        **{name: entry["requirements"][name] for name in ("peer_access", "multicast")},
    }


def told(module: ProblemModule) -> dict[str, Any]:
    """Return what the problem's own file says of it."""
    problem = module.problem
    copied = ("number", "title", "source", "domain", "summary", "statement", "outputs", "mutates")
    more = ("mesh", "topology", "also", "world_sizes", "tolerance_reason")
    reasons = ("scored", "unscored_reason", "latency_bound_reason", "known_issues")
    ranks, own = ("ranked_from", "ranked_from_reason"), problem.output_tolerances
    return {
        **{key: _plain(getattr(problem, key)) for key in (*copied, *more, *ranks, *reasons)},
        "slug": module.slug,
        "category": module.category,
        "category_title": module.category_title,
        "signature": _signature(module),
        "sizes": {name: asdict(size) for name, size in problem.sizes.items()},
        "tolerances": _tolerances(module),
        "output_tolerances": {name: _tolerances(module, name) for name in own},
        "compared": {key: _plain(value) for key, value in compared(module.slug)._asdict().items()},
        "reference_source": reference_source(module),
        "digest": module.digest,
        "costs": _costs(module),
        "timed_arguments": _timed_arguments(module),
        "requirements": asdict(problem.requirements),
    }


def _tolerances(module: ProblemModule, output: str = "") -> dict[str, dict[str, Any]]:
    """Return by dtype the tolerance of `hardened`, of an output that has its own or of others."""
    return {
        dtype: {
            "atol": limit.atol,
            "rtol": limit.rtol,
            "rms": limit.rms,
            "outliers": limit.outliers,
        }
        for dtype in module.problem.tolerances
        for limit in [module.problem.tolerance("hardened", dtype, output)]
    }


def _entry(module: ProblemModule) -> dict[str, Any]:
    return {
        **told(module),
        "work_share": work_share(module),
        "baselines": _baselines(module),
    }


def _timed_arguments(module: ProblemModule) -> dict[str, Any]:
    """Return what is exported, as long as the problem is the same: drawing takes seconds."""
    exported = _exported().get(module.slug, {})
    if exported.get("digest") == module.digest and "timed_arguments" in exported:
        kept: dict[str, Any] = exported["timed_arguments"]
        return kept
    return timed_arguments(module)


@cache
def _exported() -> dict[str, dict[str, Any]]:
    return {one["slug"]: one for one in stored()["problems"]} if PATH.exists() else {}


def _baselines(module: ProblemModule) -> list[dict[str, Any]]:
    """Return the times that benchmarks/references_on_gpus.py measured, failures left out.

    `current` says that the code is still the same.
    """
    rows = []
    for path in sorted(PATH.parent.glob("baselines-*.json")):
        document: dict[str, Any] = json.loads(path.read_text())
        measured = document.pop("problems").get(module.slug, {})
        if "us" in measured:
            current = measured.pop("behaviour") == behaviour(module)
            rows.append({**document, **measured, "current": current})
    return rows


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _signature(module: ProblemModule) -> list[dict[str, str | None]]:
    """List the reference's arguments. A default of None means a required one; Python's None is
    the text "None"."""
    return [
        {
            "name": name,
            "annotation": inspect.formatannotation(parameter.annotation),
            "default": None if parameter.default is parameter.empty else repr(parameter.default),
        }
        for name, parameter in inspect.signature(module.reference).parameters.items()
    ]


def _costs(module: ProblemModule) -> dict[str, dict[str, dict[str, float]]]:
    return {
        name: {
            str(world): asdict(
                module.cost(module.dims(size.m, size.n, world), world, COST_ITEMSIZE)
            )
            for world in module.problem.world_sizes
        }
        for name, size in module.problem.sizes.items()
    }
