"""Says how hard a problem is, by how many models solve it. Pure."""

from __future__ import annotations

# By the share of models that solved a problem, which must be more than this; from the easiest on.
DIFFICULTIES = {
    "easy": (2 / 3, "easy: solved by more than two thirds of the models"),
    "medium": (1 / 3, "medium: by more than a third"),
    "hard": (0.0, "hard: by a third at most"),
    "unsolved": (-1.0, "unsolved: by none"),
}
FEWEST_MODELS = 2


def solve_rate(solved: int, tried: int) -> float | None:
    """Return the share of models that solved it, of those that tried; None where too few did."""
    return solved / tried if tried >= FEWEST_MODELS else None


def difficulty(solved: int, tried: int) -> str:
    """Return one of DIFFICULTIES; empty where too few models tried."""
    rate = solve_rate(solved, tried)
    if rate is None:
        return ""
    return next(name for name, (least, _) in DIFFICULTIES.items() if rate > least)
