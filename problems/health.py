"""The audit: the screen of every problem over many secrets, kept in the fixtures and the docs.

What is kept per problem: which answers each profile accepts, the largest error of honest answers
and the smallest of wrong ones in tolerances, and a digest of the code that was screened.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from math import inf, isfinite
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import torch

import problems
from problems import ProblemModule
from problems.answers import HONEST
from problems.ranks import GlooRanks, RankFailure
from problems.screen import Finding, screen

PATH = Path(__file__).parents[1] / "fixtures" / "problem-health.json"
TIMEOUT_S = 600.0
BEHAVIOUR = {"number", "mutates", "mesh", "m_step", "n_step", "sizes", "tolerances", "outputs"}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Hardened inputs are screened on the CPU at `tiny` with so many secrets, on each world size;
    upstream ones, which know no secret, once at `standard`, on a device of their own."""

    secrets: int
    world_sizes: tuple[int, ...] = (2, 4)
    upstream_ranks: int = 2
    upstream_device: str = "cpu"


@dataclass(frozen=True, kw_only=True)
class Health:
    behaviour: str
    secrets: int
    world_sizes: tuple[int, ...]
    upstream: str
    torch: str
    findings: tuple[Finding, ...]


def audit(
    names: Sequence[str], plan: Plan, jobs: int
) -> Iterable[tuple[str, Health | RankFailure]]:
    """Slug and health of each problem, as they become ready; `jobs` problems run at once. One that
    fails does not end the audit of the others."""
    published = GlooRanks(plan.upstream_ranks, timeout_s=TIMEOUT_S, device=plan.upstream_device)
    teams = [[GlooRanks(w, timeout_s=TIMEOUT_S) for w in plan.world_sizes] for _ in range(jobs)]
    free: SimpleQueue[list[GlooRanks]] = SimpleQueue()
    for team in teams:
        free.put(team)

    def upstream(name: str) -> list[Finding]:
        return screen(published, name, "upstream", size="standard")

    def hardened(name: str) -> list[Finding]:
        team = free.get()
        try:
            return screen_often(team, name, plan.secrets)
        finally:
            free.put(team)

    try:
        with ThreadPoolExecutor(1) as alone, ThreadPoolExecutor(jobs) as pool:
            first = {name: alone.submit(upstream, name) for name in names}
            second = {pool.submit(hardened, name): name for name in names}
            for done in as_completed(second):
                name = second[done]
                try:
                    found = first[name].result() + done.result()
                    yield problems.load(name).slug, _health(name, plan, found)
                except RankFailure as failure:
                    yield problems.load(name).slug, failure
    finally:
        for ranks in (published, *(ranks for team in teams for ranks in team)):
            ranks.close()


def screen_often(team: Sequence[GlooRanks], name: str, secrets: int) -> list[Finding]:
    """Hardened inputs from so many secrets on every member of the team; the worst counts."""
    return merged(
        [
            screen(ranks, name, "hardened", secret=f"audit {number}".encode())
            for ranks in team
            for number in range(secrets)
        ]
    )


def _health(name: str, plan: Plan, findings: list[Finding]) -> Health:
    return Health(
        behaviour=behaviour(problems.load(name)),
        secrets=plan.secrets,
        world_sizes=plan.world_sizes,
        upstream=f"{plan.upstream_ranks} ranks, {plan.upstream_device}",
        torch=torch.__version__,
        findings=tuple(findings),
    )


def merged(rounds: Sequence[Sequence[Finding]]) -> list[Finding]:
    """One finding per answer. The worst round counts: the one that errs, or comes nearest to it."""
    return [_worst(same) for same in zip(*rounds, strict=True)]


def _worst(same: Sequence[Finding]) -> Finding:
    wrong = next((f for f in same if not f.as_it_should_be), same[0])
    worst = max if wrong.honest else min
    errors = {dtype: worst(f.errors[dtype] for f in same) for dtype in wrong.errors}
    return Finding(**{**vars(wrong), "errors": errors})


def behaviour(module: ProblemModule) -> str:
    """SHA-256 of what the screen depends on: the code and those fields of `Problem`, no texts."""
    parts = []
    for node in ast.parse(module.path.read_text()).body:
        if isinstance(node, ast.FunctionDef) and node.name != "cost":
            parts.append(ast.dump(_without_docstring(node)))
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            parts += [ast.dump(k) for k in node.value.keywords if k.arg in BEHAVIOUR]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _without_docstring(node: ast.FunctionDef) -> ast.FunctionDef:
    if ast.get_docstring(node) is not None:
        node.body = node.body[1:] or [ast.Pass()]
    return node


def stored() -> dict[str, dict[str, Any]]:
    """Slug -> what the last audit found; empty before the first one."""
    found: dict[str, dict[str, Any]] = json.loads(PATH.read_text()) if PATH.exists() else {}
    return found


def store(found: Mapping[str, Health]) -> None:
    """Add to what is there; problems that no longer exist are dropped."""
    known = [problems.load(name).slug for name in problems.names()]
    merged_with = {**stored(), **{slug: _plain(health) for slug, health in found.items()}}
    document = {slug: merged_with[slug] for slug in known if slug in merged_with}
    PATH.parent.mkdir(exist_ok=True)
    PATH.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def _plain(health: Health) -> dict[str, Any]:
    rows = [{**asdict(f), "errors": _finite(f.errors)} for f in health.findings]
    return {**vars(health), "world_sizes": list(health.world_sizes), "findings": rows}


def _finite(errors: Mapping[str, float]) -> dict[str, float | None]:
    """JSON knows no infinity: None where an error has no unit."""
    return {d: float(f"{error:.3g}") if isfinite(error) else None for d, error in errors.items()}


def margins(findings: Iterable[Mapping[str, Any]]) -> tuple[float, float]:
    """The worst honest error and the cheapest wrong one under `hardened`, in tolerances."""
    worst_honest, cheapest_wrong = 0.0, inf
    for row in findings:
        if row["profile"] == "hardened" and row["accepted"] is not None:
            errors = [inf if error is None else error for error in row["errors"].values()]
            if row["answer"] in HONEST:
                worst_honest = max(worst_honest, *errors)
            else:
                cheapest_wrong = min(cheapest_wrong, *errors)
    return worst_honest, cheapest_wrong
