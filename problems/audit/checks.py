"""Try every rule on some problems, on this machine alone, for `python -m problems check`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import problems
from problems.audit.health import unaudited
from problems.audit.rank_rules import RANK_RULES
from problems.audit.rules import RULES
from problems.catalogue import unexported
from problems.running.ranks import RankFailure, RankPool

WORLD_SIZES = (2, 4)


def complaints(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield name and complaint. A rule that a problem makes raise is a complaint as well."""
    for name in names:
        module = problems.load(name)
        for title, rule in RULES.items():
            try:
                yield from ((name, found) for found in rule(module))
            except Exception as error:  # noqa: BLE001 - the file under test may raise anything
                yield name, f"{title.replace('_', ' ')}: {type(error).__name__}: {error}"
    for world_size in WORLD_SIZES:
        with RankPool(world_size) as ranks:
            for name in names:
                for rank_rule in RANK_RULES:
                    try:
                        yield from ((name, found) for found in rank_rule(ranks, name))
                    except RankFailure as failure:
                        last = str(failure).strip().splitlines()[-1]
                        yield name, f"on {world_size} ranks: {last}"


def due(names: Sequence[str]) -> Iterator[str]:
    """Yield the commands that keep the fixtures up to these problems, each with why it is due.

    Ask it of problems that keep the rules: `cost` of another may raise."""
    if slugs := unaudited(names):
        yield f"python -m problems audit {' '.join(slugs)} (no audit of this code is kept)"
    if slugs := unexported(names):
        yield f"python -m problems export (the catalogue lacks what is new of {', '.join(slugs)})"
