"""Derives from a kernel's source, before it runs, its backend and what its hosts must have."""

from __future__ import annotations

from evaluator.messages.job import Backend, Placement
from evaluator.messages.languages import languages
from evaluator.messages.needs import fixed_ranks, needs
from leaderboard.kit.json_types import JsonDict


def needs_on_gpus(
    source: str,
    backend: str,
    requirements: JsonDict,
    world_size: int,
    placement: str = Placement.FULL.value,
) -> frozenset[str]:
    """Return the abilities that judging it on so many ranks, placed like that on GPUs, takes;
    `requirements` are its problem's."""
    found = needs(
        source,
        Backend(backend),
        world_size=world_size,
        peer_access=bool(requirements.get("peer_access", True)),
        multicast=bool(requirements.get("multicast", False)),
        placement=Placement(placement),
    )
    return frozenset(ability.value for ability in found)


def ranks_of(source: str, backend: str) -> int | None:
    """Return for how many ranks alone a ParallelKittens source is written; None for any other."""
    found = fixed_ranks(source) if backend == Backend.PARALLELKITTENS else frozenset()
    return min(found) if len(found) == 1 else None


def backend_found(source: str) -> str:
    """Return the backend that a source shows, the first of several."""
    return languages(source)[0].value
