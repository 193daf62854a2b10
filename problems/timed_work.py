"""Keep what share of a problem's `cost` its timed calls need on average. Standard library only.

`cost` is the cost of a plain call, with first options and published lengths. Timed calls draw both
anew, and some options need less work, so a bound on a mean time multiplies `cost` by this share.
`python -m problems audit` measures the shares (`measured_work`), and the judge reads them.
"""

from __future__ import annotations

import json
from pathlib import Path

from problems import ProblemModule

PATH = Path(__file__).with_name("timed_work.json")


def work_share(module: ProblemModule) -> float:
    """Return the mean work of a timed call over that of a plain call; 1 if nobody measured it."""
    return stored().get(module.slug, 1.0)


def stored() -> dict[str, float]:
    """Read the measured shares, by slug."""
    found: dict[str, float] = json.loads(PATH.read_text()) if PATH.exists() else {}
    return found


def store(slug: str, share: float) -> None:
    """Replace the share of a problem."""
    PATH.write_text(json.dumps({**stored(), slug: share}, indent=1, sort_keys=True) + "\n")
