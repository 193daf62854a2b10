"""Reads the classes of hardware of which the topology text is made."""

from __future__ import annotations

from collections.abc import Iterable

from leaderboard.kit.json_types import JsonDict, JsonObject
from leaderboard.models import Hardware
from leaderboard.read_model.calibration import PAIR_FACT, of_release
from leaderboard.read_model.problem_results import SettingTotals
from problems.topology import HardwareClass, measured_class, slowest_pair

COLUMNS = ("slug", "title", "device", "max_world_size", f"facts__{PAIR_FACT}")
Classes = dict[str, HardwareClass]


def every_class() -> Classes:
    """Return by slug what hosts have said hello with and what the release has measured; one
    query."""
    rows = Hardware.objects.values_list(*COLUMNS)
    return _measured_by_release() | {row[0]: _measured(*row) for row in rows}


def classes_of(stood: Iterable[SettingTotals]) -> Classes:
    """Return by slug the classes of a problem's results, and what the release has measured."""
    own = {
        one.hardware_id: _measured(
            one.hardware_id,
            one.hardware__title,
            one.hardware__device,
            one.hardware__max_world_size,
            one.hardware__facts__pair_gb_s,
        )
        for one in stood
    }
    return _measured_by_release() | own


def class_of(known: JsonDict, data: JsonObject | None) -> HardwareClass:
    """Return one of which {slug, title, device, ranks} and the calibration are known."""
    own = {name: known[name] for name in ("slug", "title", "device", "ranks")}
    return HardwareClass(**own, pair_gb_s=slowest_pair(data))


def _measured(
    slug: str, title: str, device: str, ranks: int, pair_gb_s: float | None
) -> HardwareClass:
    pair = pair_gb_s or slowest_pair(of_release().get(slug))
    return HardwareClass(slug, title, device, ranks, pair)


def _measured_by_release() -> Classes:
    return {slug: measured_class(slug, data) for slug, data in of_release().items()}
