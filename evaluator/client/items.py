"""Holds what a judge is asked, and what it answers."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..messages.answers import fault_of, find_kernel
from ..messages.entry import has_entry
from .rewards import Reward, is_judged, suspicious

TIERS = ("check", "time")
_KEY = re.compile(r"[A-Za-z0-9._:/-]{1,64}")
WIRE = (
    *("problem", "source", "backend", "tier", "group_id"),
    *("device", "hardware", "world_size", "size", "dtype"),
)


@dataclass(frozen=True)
class Item:
    """Asks for one judgement. `source` is the kernel's text; None if an answer held none.

    `tier` is `check` (right or wrong, no clock) or `time`. Items with one `group_id` are judged on
    equal inputs. What is None is left to the judge. `id` names the judgement: an item sent again
    under its id is one; without one it gets a fresh id. `about` is yours and is not sent.
    """

    problem: str
    source: str | None
    id: str | None = None
    backend: str | None = None
    tier: str = "check"
    group_id: str | None = None
    device: str | None = None
    hardware: str | None = None
    world_size: int | None = None
    size: str | None = None
    dtype: str | None = None
    about: Any = None

    def __post_init__(self) -> None:
        faults = [f"tier {self.tier!r} is none of {', '.join(TIERS)}"] * (self.tier not in TIERS)
        faults += [
            f"{name} {value!r} is not 1 to 64 of A-Z a-z 0-9 . _ : / -"
            for name, value in (("id", self.id), ("group_id", self.group_id))
            if value is not None and not _KEY.fullmatch(value)
        ]
        if faults:
            raise ValueError("; ".join(faults))

    def named(self, key: str) -> Item:
        """Return the same item under this id, if it has none."""
        return self if self.id else dataclasses.replace(self, id=key)

    def wire(self) -> dict[str, Any]:
        """Return the fields that are sent."""
        told = {name: getattr(self, name) for name in WIRE if getattr(self, name) is not None}
        return {"id": self.id, **told}


def as_item(given: Item | Mapping[str, Any]) -> Item:
    """Return an item, made of its fields if need be. Raises ValueError for an unknown field."""
    if isinstance(given, Item):
        return given
    known = {each.name for each in dataclasses.fields(Item)}
    if unknown := sorted(set(given) - known):
        raise ValueError(f"an item has no {', '.join(unknown)}: it has {', '.join(sorted(known))}")
    return Item(**given)


@dataclass(frozen=True)
class Result:
    """Holds what the judge found.

    `reward` is None if there is none: a fault of ours, a time that was not measured, or a flag of
    cheats. `feedback` may be shown to a model. `report` holds the numbers of docs/python.md.
    """

    item: Item
    verdict: str
    reward: float | None
    feedback: str
    report: Mapping[str, Any] = field(repr=False)

    @property
    def id(self) -> str:
        """Return the id of the item."""
        return self.item.id or ""

    @property
    def is_judged(self) -> bool:
        """Return True if the verdict says something about the kernel."""
        return is_judged(self.report)

    @property
    def speedup(self) -> float | None:
        """Return the reference's time over the kernel's; None if it was not timed."""
        found = self.report.get("speedup")
        return None if found is None else float(found)

    @property
    def flags(self) -> tuple[str, ...]:
        """Return the suspicious flags, for which there is no reward unless you ask for one."""
        return suspicious(self.report)


def result_of(
    item: Item, report: Mapping[str, Any], reward: Reward, *, rewards_flagged: bool
) -> Result:
    """Return the result of a report."""
    is_flagged = bool(suspicious(report)) and not rewards_flagged
    value = None if is_flagged or not is_judged(report) else reward(report)
    verdict = str(report["verdict"])
    return Result(item, verdict, value, str(report.get("feedback", "")), report)


def not_sent(item: Item) -> dict[str, Any] | None:
    """Return the report of a kernel that needs no judge, as it cannot run; None of any other."""
    source = item.source
    if source is None:
        return _unfit("missing_entry_point", "the answer holds no kernel")
    if fault := fault_of(source):
        return _unfit("build_error", fault)
    return None if has_entry(source) else _unfit("missing_entry_point", "it defines no `solution`")


def _unfit(verdict: str, why: str) -> dict[str, Any]:
    return {"verdict": verdict, "phase": "build", "feedback": f"verdict: {verdict}\n{why}"}


def extract(answer: str, *, is_cut: bool = False) -> str | None:
    """Return the kernel that an answer of a model holds, as the harness finds it; None if none.

    It is the longest fenced block that parses and defines `solution`. Say `is_cut` if the answer
    ended at a limit of tokens: an open block is no kernel then.
    """
    return find_kernel(answer, is_cut=is_cut)
