"""Reads what GPUs reach, measured by `python -m evaluator calibrate`: files of the release, or
stored with `manage.py load_calibration` in the facts of a class of hardware."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

from leaderboard.kit.json_types import JsonDict, JsonObject

FOLDER = Path(settings.BASE_DIR) / "fixtures"
FACT = "calibration"
# Kept beside it, as the whole is long to read.
PAIR_FACT = "pair_gb_s"
ENVIRONMENT = "environment"
# What each quantity is, in the order in which pages show them.
QUANTITIES = {
    "link": "Link, one pair, one way",
    "links": "Links, all pairs at once",
    "all_to_all": "NCCL all-to-all",
    "hbm_read": "Memory, read",
    "hbm_copy": "Memory, copy",
    "bfloat16": "Matrix products, bfloat16",
    "float16": "Matrix products, float16",
    "tensorfloat32": "Matrix products, TF32",
    "float32": "Matrix products, float32",
    "float64": "Matrix products, float64",
    "float8": "Matrix products, float8",
    "launch": "Launch, back to back",
    "launch_and_wait": "Launch and wait",
    "signal": "Signal between two GPUs",
    "signal_kernels": "Signal, a kernel each way",
    "barrier": "Barrier of all GPUs",
    "all_reduce": "NCCL all-reduce of one element",
}
# Settings by which a host goes without NVLink multicast.
MULTICAST_OFF = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1"}
FIELDS = ("quantity", "where", "unit", "samples", "median", "best", "datasheet")


class CalibrationError(Exception):
    """Reports a file that is not a calibration; the text says what is wrong with it."""


@dataclass(frozen=True, kw_only=True)
class Reached:
    """Describes one quantity over the places where it was measured: the middle of their medians and
    the best, in `unit`."""

    quantity: str
    title: str
    unit: str
    places: int
    median: float
    best: float
    datasheet: float | None

    @property
    def share(self) -> float | None:
        return self.median / self.datasheet if self.datasheet else None


@functools.cache
def of_release() -> dict[str, JsonDict]:
    """Return the calibrations of the release by class of hardware: `h200x2` names that in
    `calibration-h200x2.json`."""
    found = sorted(FOLDER.glob("calibration-*.json"))
    return {path.stem.partition("-")[2]: read(path) for path in found}


def read(path: Path) -> JsonDict:
    """Return a calibration as its file has it. Raises CalibrationError."""
    try:
        return checked(json.loads(path.read_text()))
    except (OSError, ValueError) as error:
        raise CalibrationError(f"{path} is not a calibration: {error!r}") from None
    except CalibrationError as error:
        raise CalibrationError(f"{path} is {error}") from None


def checked(data: Any) -> JsonDict:
    """Return a JSON value that is a calibration. Raises CalibrationError for another."""
    try:
        for row in data["measurements"]:
            numbers = [row["median"], row["best"], row["datasheet"] or 0.0, row["samples"]]
            _ = [float(number) for number in numbers], [str(row[name]) for name in FIELDS]
        _ = dict(data["versions"]), dict(data["settings"]), list(data["gpus"]), data["date"]
        return dict(data)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CalibrationError(f"not a calibration: {error!r}") from None


def check_facts(facts: Any) -> None:
    """Raise CalibrationError unless the facts of a class of hardware are as pages read them."""
    if not isinstance(facts, dict):
        raise CalibrationError("not an object")
    if unknown := sorted(facts.keys() - {FACT, PAIR_FACT, ENVIRONMENT}):
        raise CalibrationError(f"{unknown[0]} is none of: {FACT}, {PAIR_FACT}, {ENVIRONMENT}")
    if FACT in facts:
        checked(facts[FACT])
    pair = facts.get(PAIR_FACT)
    if pair is not None and (type(pair) not in (int, float) or not 0 <= pair < 1e6):
        raise CalibrationError(f"{PAIR_FACT} is neither null nor a number of GB/s")
    found = facts.get(ENVIRONMENT, {})
    versions = found.get("versions", {}) if isinstance(found, dict) else None
    if not isinstance(versions, dict) or not all(isinstance(v, str) for v in versions.values()):
        raise CalibrationError(f"{ENVIRONMENT} is not an object with versions by name")


def known_of(slug: str, facts: JsonObject) -> JsonDict | None:
    """Return the calibration of the site's own host, else that of the release, else None."""
    return facts.get(FACT) or of_release().get(slug)


def reached(data: JsonObject) -> list[Reached]:
    """Return every quantity once, in the order of QUANTITIES."""
    groups: dict[str, list[JsonObject]] = {}
    for row in data["measurements"]:
        groups.setdefault(row["quantity"], []).append(row)
    order = [*QUANTITIES, *(name for name in groups if name not in QUANTITIES)]
    return [_reached(name, groups[name]) for name in order if name in groups]


def _reached(name: str, rows: Sequence[JsonObject]) -> Reached:
    medians = sorted(float(row["median"]) for row in rows)
    is_time = rows[0]["unit"] == "us"
    pick = min if is_time else max
    return Reached(
        quantity=name,
        title=QUANTITIES.get(name, name),
        unit=rows[0]["unit"].replace("us", "µs"),
        places=len(rows),
        median=medians[len(medians) // 2],
        best=pick(float(row["best"]) for row in rows),
        # No vendor states a time: what calibrations hold there was measured by us.
        datasheet=None if is_time else rows[0]["datasheet"],
    )


def lacks(data: JsonObject) -> list[str]:
    """Return, in words, features that kernels cannot use on this host, and what could not be
    measured."""
    told = data["settings"]
    off = [name for name, value in MULTICAST_OFF.items() if told.get(name) == value]
    found = [f"NVLink multicast is off ({', '.join(off)})"] if off else []
    return found + [f"{name}: {why}" for name, why in data.get("unmeasured", {}).items()]


def versions(data: JsonObject) -> dict[str, str]:
    """Return the versions of the host that was measured, with its driver's."""
    driver = {"driver": data["driver"]} if data.get("driver") else {}
    return {**data.get("versions", {}), **driver}
