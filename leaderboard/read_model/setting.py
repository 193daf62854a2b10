"""Defines a setting: what must be equal for results to be compared."""

from __future__ import annotations

import re
from dataclasses import dataclass

from leaderboard.models.choices import FULL, is_timed, judge_of_today
from leaderboard.models.staleness import judge_now

IN_WORDS = {"world_size": "{} ranks", "profile": "{} inputs", "judge_version": "judge {}"}
# Judges with the same checks are compared there, whatever their clock.
UNTIMED_IN_WORDS = {"judge_version": "checks of judge {}"}
SHARED_IN_WORDS = "ranks on one device"
# A class of hosts is named after its GPU and how many of them a host has.
GPUS = re.compile(r"([a-z]+[0-9]+[a-z]*)x[0-9]+")


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Holds what must be equal for two times, or two verdicts, to be compared."""

    hardware_id: str
    world_size: int
    size: str
    dtype: str
    profile: str
    judge_version: str
    placement: str = FULL

    @property
    def is_timed(self) -> bool:
        """Return whether what is right is timed here, and not only checked."""
        return is_timed(self.placement)

    @property
    def is_todays(self) -> bool:
        """Return whether what is judged now can be compared with what was judged here."""
        return self.judge_version == judge_of_today(self.placement)

    def __str__(self) -> str:
        return self.in_words() + judge_now(self.judge_version, self.placement)

    def in_words(self, but: str = "") -> str:
        """Return the setting in words, without the field named `but`."""
        kept = {name: value for name, value in vars(self).items() if name not in (but, "placement")}
        in_words = IN_WORDS if self.is_timed else {**IN_WORDS, **UNTIMED_IN_WORDS}
        words = [in_words.get(name, "{}").format(value) for name, value in kept.items()]
        return ", ".join(words if self.is_timed else [*words, SHARED_IN_WORDS])


def tells_times(setting: Setting | None) -> bool:
    """Return whether pages have room for times: not where a setting has none; without results, they
    have."""
    return setting is None or setting.is_timed


def machine_in_words(setting: Setting) -> str:
    """Return where a setting's ranks run: `2 H200s`, `one H200, shared by 4 ranks`, `2 ranks of
    cpu`."""
    named = GPUS.fullmatch(setting.hardware_id)
    if not named:
        return f"{setting.world_size} ranks of {setting.hardware_id}"
    gpu = named[1].upper()
    if not setting.is_timed:
        return f"one {gpu}, shared by {setting.world_size} ranks"
    return f"{setting.world_size} {gpu}{'' if setting.world_size == 1 else 's'}"


SETTING_FIELDS = tuple(Setting.__dataclass_fields__)
