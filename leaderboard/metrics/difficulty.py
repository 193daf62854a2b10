"""Says how hard a problem is, by how many models solve it. Pure."""

from __future__ import annotations

from typing import NamedTuple

UNSOLVED = "unsolved"
# By the share of models that solved a problem, which must be more than this; from the easiest on.
DIFFICULTIES = {
    "easy": (2 / 3, "easy: solved by more than two thirds of the models"),
    "medium": (1 / 3, "medium: by more than a third"),
    "hard": (0.0, "hard: by a third at most"),
    UNSOLVED: (-1.0, "unsolved: by none"),
}
FEWEST_MODELS = 2


class Difficulty(NamedTuple):
    """Holds how many models solved a problem, of those that tried it."""

    models_solved: int = 0
    models_tried: int = 0

    @property
    def solve_rate(self) -> float | None:
        """Return the share of models that solved it; None where too few tried."""
        if self.models_tried < FEWEST_MODELS:
            return None
        return self.models_solved / self.models_tried

    @property
    def difficulty(self) -> str:
        """Return one of DIFFICULTIES; empty where too few models tried."""
        rate = self.solve_rate
        if rate is None:
            return ""
        return next(name for name, (least, _) in DIFFICULTIES.items() if rate > least)
