"""Counts kernels that failed where ranks share a GPU as failed where they are timed. Pure.

Only what is correct on one GPU is worth timing. Without its failures a timed setting would say that
models never fail.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from leaderboard.metrics.attempts import CARRIED, AttemptSummary
from leaderboard.models.choices import SHARED, comparable_judge
from leaderboard.models.runs import SETTING

# Values of the columns SETTING.
Setting = tuple[Any, ...]
Attempts = Sequence[AttemptSummary]
# What a check and a timed setting have in common; the hardware and the number of ranks may differ.
ALIKE = tuple(SETTING.index(name) for name in ("size", "dtype", "profile"))
HARDWARE, JUDGE, PLACEMENT = map(SETTING.index, ("hardware_id", "judge_version", "placement"))


def with_failures(
    own: Mapping[Setting, Attempts], timed: Set[Setting], devices: Mapping[str, str]
) -> dict[Setting, Attempts]:
    """Return a problem's attempts by setting, with what each of the `timed` settings takes over:
    attempts that did not run there and failed wherever they were checked under the same checks.

    These are marked as CARRIED. A problem of which nothing ran there and an attempt passed is left
    to be timed. `devices` are those of the classes of hardware: a check on processors says nothing
    of GPUs.
    """
    made = dict(own)
    for setting in sorted(timed):
        here = own.get(setting, ())
        known = {entry["attempt"] for entry in here}
        failed, passed = _checked(own, setting, devices)
        taken = [{**entry, CARRIED: True} for entry in failed if entry["attempt"] not in known]
        if taken and (here or not passed):
            made[setting] = sorted((*here, *taken), key=lambda entry: int(entry["attempt"]))
    return made


def _checked(
    own: Mapping[Setting, Attempts], timed: Setting, devices: Mapping[str, str]
) -> tuple[Attempts, Set[int]]:
    """Return the attempts that failed in every setting that checks what `timed` times, and the
    numbers of those that passed in one."""
    places = [place for place in sorted(own) if _checks(place, timed, devices)]
    checked = [entry for place in places for entry in own[place]]
    passed = {entry["attempt"] for entry in checked if entry["verdict"] == "ok"}
    failed: dict[int, AttemptSummary] = {}
    for entry in checked:
        if entry["attempt"] not in passed:
            failed.setdefault(entry["attempt"], entry)
    return list(failed.values()), passed


def _checks(place: Setting, timed: Setting, devices: Mapping[str, str]) -> bool:
    return (
        place[PLACEMENT] == SHARED
        and place[JUDGE] == comparable_judge(timed[JUDGE], SHARED)
        and devices[place[HARDWARE]] == devices[timed[HARDWARE]]
        and all(place[at] == timed[at] for at in ALIKE)
    )
