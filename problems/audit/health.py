"""Audit problems: screen each over many seeds and keep what is found in the fixtures.

Kept are, per problem and profile: which answers are accepted, the largest error of honest ones
and the smallest of wrong ones in tolerances, and a digest of the code that was screened.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from math import isfinite
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import torch

import problems
from problems import ProblemModule, timed_work
from problems.audit.screen import TRIALS, Finding, screen
from problems.running.ranks import RankFailure, RankPool
from problems.sources import behaviour
from problems.trials import PROFILES

PATH = Path(__file__).parents[2] / "fixtures" / "problem-health.json"
TIMEOUT_S = 600.0
SCREENED_AT = "tiny"  # where nobody asks for another size of hardened inputs
LARGEST_ERROR = 1e12  # in tolerances


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Say how one profile is screened. A seed is one seeded set of inputs on all ranks; every
    secret gives as many of them as the screen has trials. Honest answers are tried on
    `honest_seeds` where these are more."""

    profile: str
    size: str
    seeds: int
    world_sizes: tuple[int, ...]
    device: str = "cpu"
    is_shared: bool = False
    honest_seeds: int = 0

    @property
    def key(self) -> str:
        """Return under which name the findings are kept."""
        is_larger = self.profile == "hardened" and self.size != SCREENED_AT
        return f"{self.profile}-{self.size}" if is_larger else self.profile

    @property
    def secrets(self) -> int:
        return -(-self.seeds // TRIALS[self.profile])

    @property
    def honest_secrets(self) -> int:
        return -(-max(self.seeds, self.honest_seeds) // TRIALS[self.profile])


@dataclass(frozen=True, kw_only=True)
class Health:
    """Hold the findings of one plan about one problem."""

    behaviour: str
    plan: Plan
    torch: str
    findings: tuple[Finding, ...]


def plans(
    seeds: int,
    honest_seeds: int,
    *,
    cuda: bool = False,
    is_shared: bool = False,
    size: str = SCREENED_AT,
) -> list[Plan]:
    """Return a plan for each profile. Upstream inputs know no secret, so once is enough, at PKB's
    own size; on GPUs they are PKB's own values, too."""
    upstream = Plan(
        profile="upstream",
        size="standard",
        seeds=TRIALS["upstream"],
        world_sizes=(4,) if cuda else (2,),
        device="cuda" if cuda else "cpu",
        is_shared=is_shared,
    )
    hardened = replace(
        upstream,
        profile="hardened",
        size=size,
        seeds=seeds,
        honest_seeds=honest_seeds,
        world_sizes=(2, 4),
    )
    return [upstream, hardened]


def audit(
    names: Sequence[str], plan: Plan, jobs: int
) -> Iterable[tuple[str, Health | RankFailure]]:
    """Yield slug and health of each problem, as they become ready; `jobs` problems run at once.

    One that fails yields its RankFailure and does not end the audit of the others.
    """
    teams = [
        [
            RankPool(w, timeout_s=TIMEOUT_S, device=plan.device, is_shared=plan.is_shared)
            for w in plan.world_sizes
        ]
        for _ in range(jobs)
    ]
    free: SimpleQueue[list[RankPool]] = SimpleQueue()
    for team in teams:
        free.put(team)

    def one(name: str) -> Health | RankFailure:
        team = free.get()
        try:
            return audit_problem(team, name, plan)
        except RankFailure as failure:
            return failure
        finally:
            free.put(team)

    try:
        with ThreadPoolExecutor(jobs) as pool:
            running = {pool.submit(one, name): name for name in names}
            for done in as_completed(running):
                yield problems.load(running[done]).slug, done.result()
    finally:
        for ranks in (ranks for team in teams for ranks in team):
            ranks.close()


def audit_problem(team: Sequence[RankPool], name: str, plan: Plan) -> Health:
    """Screen with every secret on every pool of the team; the worst round counts.

    Raises RankFailure.
    """
    rounds = [
        screen(
            ranks,
            name,
            plan.profile,
            size=plan.size,
            secret=f"audit {number}".encode(),
            only_honest=number >= plan.secrets,
        )
        for ranks in team
        for number in range(plan.honest_secrets)
    ]
    return Health(
        behaviour=behaviour(problems.load(name), plan.profile),
        plan=plan,
        torch=torch.__version__,
        findings=tuple(merged(rounds)),
    )


def merged(rounds: Sequence[Sequence[Finding]]) -> list[Finding]:
    """Return one finding per answer, of the worst round: the one that errs, or comes nearest."""
    by_answer: dict[str, list[Finding]] = {}
    for finding in (finding for found in rounds for finding in found):
        by_answer.setdefault(finding.answer, []).append(finding)
    return [_worst(same) for same in by_answer.values()]


def _worst(same: Sequence[Finding]) -> Finding:
    tried = [f for f in same if f.accepted is not None] or same
    wrong = next((f for f in tried if not f.as_it_should_be), tried[0])
    worst = max if wrong.honest else min
    measured = {
        name: {
            dtype: worst(own[dtype] for f in tried if dtype in (own := getattr(f, name)))
            for dtype in {dtype: None for f in tried for dtype in getattr(f, name)}
        }
        for name in ("errors", "rms_errors")
    }
    return Finding(**{**vars(wrong), **measured})


def stored() -> dict[str, dict[str, Any]]:
    """Read findings of the last audit by slug and profile; empty before the first one."""
    found: dict[str, dict[str, Any]] = json.loads(PATH.read_text()) if PATH.exists() else {}
    return found


def unaudited(names: Sequence[str]) -> list[str]:
    """Return the slugs of problems whose code is not what the last audit of each profile screened,
    or whose timed work was never measured."""
    found, modules = stored(), [problems.load(name) for name in names]
    return [m.slug for m in modules if not _is_audited(m, found.get(m.slug, {}))]


def _is_audited(module: ProblemModule, found: Mapping[str, Any]) -> bool:
    of_this_code = {p for p, part in found.items() if part["behaviour"] == behaviour(module, p)}
    return module.slug in timed_work.stored() and of_this_code >= set(PROFILES)


def store(slug: str, found: Health) -> None:
    """Put it in place of what the last audit of this profile and size found of this problem."""
    document = stored()
    document.setdefault(slug, {})[found.plan.key] = _plain(found)
    known = [problems.load(name).slug for name in problems.names()]
    kept = {name: document[name] for name in known if name in document}
    PATH.parent.mkdir(exist_ok=True)
    PATH.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")


def _plain(health: Health) -> dict[str, Any]:
    plan = health.plan
    return {
        "behaviour": health.behaviour,
        "size": plan.size,
        "seeds": plan.secrets * TRIALS[plan.profile],
        "honest_seeds": plan.honest_secrets * TRIALS[plan.profile],
        "world_sizes": list(plan.world_sizes),
        "device": plan.device,
        "torch": health.torch,
        "findings": [
            {
                **asdict(f),
                "profile": plan.key,
                "errors": _finite(f.errors),
                "rms_errors": _finite(f.rms_errors),
            }
            for f in health.findings
        ],
    }


def _finite(errors: Mapping[str, float]) -> dict[str, float | None]:
    """Write None where an error has no unit, as JSON knows no infinity, and 1e12 for larger ones:
    databases take what is much larger for whole numbers of other digits."""
    return {
        dtype: min(float(f"{error:.3g}"), LARGEST_ERROR) if isfinite(error) else None
        for dtype, error in errors.items()
    }
