"""Says in a reader's words what the closed sets of the judge mean."""

from __future__ import annotations

import re

MEANINGS = {
    "ok": "Correct in every trial and timed.",
    "build_error": "The kernel did not compile, or its source does not parse.",
    "import_error": "The file could not be imported: a missing module or name.",
    "missing_entry_point": "The file does not define solution.",
    "runtime_error": "The call raised an exception or crashed.",
    "shape_mismatch": "An output has the wrong shape, or outputs are missing.",
    "dtype_mismatch": "An output has the wrong type.",
    "nonfinite_output": "NaN or infinity where the oracle has a number.",
    "output_mismatch": "An output lies outside the tolerance.",
    "late_output": "Outputs were not complete when the ranks said they were.",
    "input_contract_broken": "An argument was changed that must not be, or memory beside it.",
    "host_unsupported": "This host cannot run such a kernel; it waits for one that can.",
    "timeout": "Some rank did not answer in time; the silent ranks are named.",
    "oom": "The kernel used up the memory it was given.",
    "resource_limit": "A limit on processes, disk or output was passed.",
    "protocol_violation": "A rank broke the rules between it and the judge.",
    "faster_than_light": "Faster than the hardware allows: the time cannot be true.",
    "infra_error": "Our fault or the host's, after every retry.",
    "cancelled": "Stopped by its owner or by staff.",
}
CAUSE_MEANINGS = {
    "race_between_calls": "Right wherever a call begins after all ranks have ended the one before, "
    "wrong where calls follow back to back: a rank writes what its peers have yet to read.",
}
# What the judge says of these is its own text alone, with units that a terminal can show.
MEASURED = frozenset({"ok", "faster_than_light"})
CHECKED = "checked"
CHECKED_MEANS = "Correct in every trial, with all ranks on one device, and never timed."
NEUTRAL = frozenset({"host_unsupported", "infra_error", "cancelled"})

PLACEMENT_WORDS = {
    "full": "one GPU per rank, timed",
    "shared": "ranks share one GPU, checked",
}
SETTING_WORDS = {
    **PLACEMENT_WORDS,
    "hardened": "hidden inputs",
    "upstream": "PKB's own inputs",
}
INPUTS_OF = {"hardened": "hidden inputs", "upstream": "PKB's own inputs"}

TRUST_MEANINGS = {
    "published": "Reported by a publication, not run here. Shown apart and never ranked.",
    "self-reported": "No result of the submission counts yet. Its page says queued, or not scored.",
    CHECKED: "Judged here with all ranks on one device only: right or wrong, never timed.",
    "verified": "Judged and timed here, under the isolation shown with each run.",
}


def trust_in(trust: str, *, is_timed: bool) -> str:
    """Return how far the results of a submission are backed in one setting."""
    return trust if is_timed else CHECKED


def standing(trust: str, *, is_timed: bool, is_waiting: bool) -> str:
    """Return the same for the page of one submission: queued, or not scored, before the first
    result that counts."""
    if trust == "self-reported":
        return "queued" if is_waiting else "not-scored"
    return trust_in(trust, is_timed=is_timed)


def verdict_words(verdict: str, *, is_timed: bool) -> str:
    """Return a verdict in words. What is right but was not timed is checked."""
    return CHECKED if verdict == "ok" and not is_timed else words(verdict)


def meaning(verdict: str, *, is_timed: bool) -> str:
    """Return what a verdict means; empty for an unknown one."""
    is_checked = verdict_words(verdict, is_timed=is_timed) == CHECKED
    return CHECKED_MEANS if is_checked else MEANINGS.get(verdict, "")


def state(verdict: str | None) -> str:
    """Return `ok`, `bad` or `open`: how a verdict is drawn, next to its word."""
    if verdict == "ok":
        return "ok"
    return "open" if verdict is None or verdict in NEUTRAL else "bad"


def words(name: str) -> str:
    """Return `output mismatch` for `output_mismatch`."""
    return name.replace("_", " ").replace("-", " ")


_AT_THE_GPU = re.compile(r"\bwaits? for the GPU, with nothing left to call")


def in_todays_words(told: str) -> str:
    """Rewrite an older judge's sentence on ranks that hang in words that say what happened."""
    return _AT_THE_GPU.sub("launched everything, and the GPU never finished it", told)


def sentence(message: str, verdict: str | None) -> str:
    """Return the judge's reason as pages write it: with a capital, and their units."""
    message = in_todays_words(message)
    if verdict in MEASURED:
        message = re.sub(r"(\d)x\b", r"\1×", re.sub(r"(\d) us\b", r"\1 µs", message))
    return message[:1].upper() + message[1:]
