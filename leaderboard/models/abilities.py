"""Answers which runs a host can judge, and what a run waits for where none can."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from evaluator.messages.job import Placement
from evaluator.messages.needs import BETWEEN_GPUS, Ability
from evaluator.messages.needs import in_words as shown_in
from leaderboard.models.access import WorkerHost
from leaderboard.models.choices import Status
from leaderboard.models.runs import Run

_EVERYTHING = frozenset(name.value for name in Ability)


def waiting_for(runs: Iterable[Run]) -> dict[UUID, str]:
    """Return of queued runs those that no known host of their hardware can judge, each with why.

    A class of hardware that no host told the abilities of is not judged by.
    """
    needed = {run: run.needed for run in runs if run.status == Status.QUEUED and run.needs}
    told = _told({run.hardware_id for run in needed})
    missing = {
        run: min((needs - _usable(own, run.placement) for own in told[run.hardware_id]), key=len)
        for run, needs in needed.items()
        if told.get(run.hardware_id)
    }
    return {run.pk: _sentence(run, lacks) for run, lacks in missing.items() if lacks}


def _told(queues: Iterable[str]) -> dict[str, list[frozenset[str]]]:
    """Return of each class of hardware what its hosts told; an old one, which tells nothing, may
    have everything."""
    found: dict[str, list[frozenset[str]]] = {}
    hosts = WorkerHost.objects.filter(queue__in=list(queues)).values_list("queue", "abilities")
    for queue, abilities in hosts if queues else ():
        found.setdefault(queue, []).append(
            frozenset(_EVERYTHING if abilities is None else abilities)
        )
    return found


def is_able(host: WorkerHost, needs: frozenset[str], placement: str) -> bool:
    """Return whether a host has all of it; an old one, which tells nothing, may have everything."""
    own = frozenset(_EVERYTHING if host.abilities is None else host.abilities)
    return needs <= _usable(own, placement)


def _usable(abilities: frozenset[str], placement: str) -> frozenset[str]:
    """Return what a host can do for ranks that are placed like that."""
    return abilities - BETWEEN_GPUS if placement == Placement.SHARED else abilities


def in_words(needs: Iterable[str]) -> str:
    """Return the names of abilities for people."""
    return ", ".join(ability.label for ability in Ability if ability in needs)


def _sentence(run: Run, lacks: Iterable[str]) -> str:
    source = None if run.kernel.submission.withholds_source else run.kernel.source.text
    names = shown_in([ability for ability in Ability if ability in lacks], source or "")
    where = "" if run.is_timed else " to ranks that share a device"
    return (
        f"The kernel needs {', '.join(names)}, which no host of {run.hardware_id} offers{where}."
        " It waits for one that does, at no cost to the model, or until it is cancelled."
    )
