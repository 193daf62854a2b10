"""Say what guards a problem's timed calls, as the audit measured it. Standard library only.

Inputs of a timed batch are chained where the answer of a call tells every rank what it cannot know
alone: an output of which enough elements depend on other ranks, and on enough unknowns (see
`dependence`), and enough are large enough for a threshold. A key has 256 thresholds, so the least
share leaves 32 that nobody can tell; it is drawn from 1024 elements, a third of which has to be
usable. Where there is no such output, a rank could open all inputs by itself, and single calls are
the guard. What was measured lies beside the problems, because the judge reads it in each run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from problems import ProblemModule

PATH = Path(__file__).with_name("guards.json")
LEAST_SHARE, LEAST_UNKNOWNS, LEAST_USABLE = 1 / 8, 64, 1 / 3

Record = Mapping[
    str, Any
]  # JSON: `behaviour`, `world_sizes`, `work`; by output `shares`, `unknowns`, `usable`


def chained_outputs(module: ProblemModule, dtype: str) -> tuple[str, ...]:
    """Return the outputs and changed arguments that may open inputs; none where single calls are
    the guard."""
    return tuple(name for name, found in _outputs(module).items() if _is_enough(found, dtype))


def guard(module: ProblemModule, dtype: str) -> str:
    return "chained batches" if chained_outputs(module, dtype) else "single calls"


def reason(module: ProblemModule, dtype: str) -> str:
    """Say in half a sentence why the guard is what it is."""
    outputs, chained = _outputs(module), chained_outputs(module, dtype)
    if module.settle is not None:
        return "several answers are right"
    if not outputs:
        return "no output of real numbers was measured"
    among = [outputs[name] for name in chained or outputs]
    share = max(found["shares"][dtype] for found in among)
    if share >= LEAST_SHARE and not chained:
        telling = [found for found in among if found["shares"][dtype] >= LEAST_SHARE]
        unknowns = max(found["unknowns"] for found in telling)
        if unknowns < LEAST_UNKNOWNS:
            return f"the answer has {unknowns} unknowns"
        part = max(found["usable"] for found in telling)
        return f"{part:.0%} of the answer is large enough for a threshold"
    if not chained:
        return f"a rank can tell {1 - share:.0%} of its answer alone"
    return f"no rank can tell {share:.0%} of {', '.join(chained)} alone"


def work_share(module: ProblemModule) -> float:
    """Return how much of `cost` a timed call needs on average, where options ask for less."""
    return float(stored().get(module.slug, {}).get("work", 1.0))


def stored() -> dict[str, Any]:
    """Read what was measured, by slug."""
    found: dict[str, Any] = json.loads(PATH.read_text()) if PATH.exists() else {}
    return found


def store(slug: str, record: Record) -> None:
    """Put a problem's record in place of its last one."""
    PATH.write_text(json.dumps({**stored(), slug: record}, indent=1, sort_keys=True) + "\n")


def _outputs(module: ProblemModule) -> Mapping[str, Any]:
    found: Mapping[str, Any] = stored().get(module.slug, {}).get("outputs", {})
    return {} if module.settle is not None else found


def _is_enough(found: Mapping[str, Any], dtype: str) -> bool:
    return bool(
        found["shares"][dtype] >= LEAST_SHARE
        and found["unknowns"] >= LEAST_UNKNOWNS
        and found["usable"] >= LEAST_USABLE
    )
