"""Reads what kernels run with on each class of hardware, as its hosts said hello with it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from leaderboard.models import WorkerHost
from leaderboard.read_model import topologies
from problems.environment import of_release
from problems.topology import HardwareClass


class HostEnvironment(NamedTuple):
    """Holds the versions of a class of hardware, and when a host said hello with them; None if no
    host did, and they are those that the release was judged with."""

    slug: str
    title: str
    device: str
    versions: Mapping[str, str]
    said_at: datetime | None


def every_environment() -> dict[str, HostEnvironment]:
    """Return them by slug, of each class the host heard last; two queries."""
    columns = ("queue", "versions", "last_seen_at")
    said = {
        row[0]: row[1:] for row in WorkerHost.objects.order_by("last_seen_at").values_list(*columns)
    }
    found = {}
    for slug, known in topologies.every_class().items():
        versions, said_at = said.get(slug) or (of_release(known.device, known.title), None)
        found[slug] = HostEnvironment(slug, known.title, known.device, versions, said_at)
    return found


def versions_of(hardware: HardwareClass) -> Mapping[str, str]:
    """Return the versions that the newest host of a class said; those of the release if none
    did."""
    rows = WorkerHost.objects.filter(queue=hardware.slug).order_by("-last_seen_at")
    return rows.values_list("versions", flat=True).first() or of_release(
        hardware.device, hardware.title
    )
