"""Says what the site found, in numbers that lead to their pages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from leaderboard.board_pages.mechanisms import nccl_speeds
from leaderboard.kit.links import url
from leaderboard.metrics.difficulty import FEWEST_MODELS
from leaderboard.read_model import boards
from leaderboard.read_model.boards import BoardRow
from leaderboard.read_model.profile_comparison import passing, settings_of_both
from leaderboard.read_model.setting import Setting, machine_in_words

# Rows whose kernels are read: as many as a board draws.
MOST_ROWS = 12


class Finding(NamedTuple):
    """Holds a number, what it says, and the page that shows it."""

    number: str
    says: str
    url: str


def findings(
    rows: Sequence[BoardRow], checked: Sequence[BoardRow], known: Sequence[Setting]
) -> list[Finding]:
    """Return the findings that the data allow: of PKB's own check, of kernels that call NCCL, of
    problems that no model solved. `checked` are the rows of the other setting."""
    models = [row for row in rows if not (row.baseline or row.by_people or row.claimed)]
    others = [row for row in checked if not (row.baseline or row.by_people)]
    return [*_of_checks(known), *_of_nccl(models), *_of_unsolved(others or models)]


def _of_checks(known: Sequence[Setting]) -> Iterator[Finding]:
    setting = next(iter(settings_of_both(known)), None)
    upstream, failing = passing(setting) if setting else (0, 0)
    if setting and failing:
        says = "models' kernels that pass PKB's own check fail on hidden inputs"
        yield Finding(
            f"{failing} of {upstream}", f"{says}, on {machine_in_words(setting)}", url("profiles")
        )


def _of_nccl(models: Sequence[BoardRow]) -> Iterator[Finding]:
    timed = [row for row in models if row.score.is_timed][:MOST_ROWS]
    speeds = nccl_speeds(cell for row in boards.alone(timed) for cell in row.cells)
    if speeds:
        says = f"median speedup of models' kernels; those that call NCCL reach {speeds[0]:.2g}×"
        yield Finding(f"{speeds[1]:.2g}× without NCCL", says, url("mechanisms"))


def _of_unsolved(rows: Iterable[BoardRow]) -> Iterator[Finding]:
    """Yield how many problems are unsolved, as the list of problems counts them."""
    tried, solved = defaultdict[int, set[str]](set), set[int]()
    for row in rows:
        for number, letter in enumerate(row.solved):
            if letter != " ":
                tried[number].add(row.slug)
            if letter == "1":
                solved.add(number)
    asked = {number for number, models in tried.items() if len(models) >= FEWEST_MODELS}
    if asked - solved:
        says = f"problems that at least {FEWEST_MODELS} models tried are solved by none"
        address = f"{url('problems')}?difficulty=unsolved"
        yield Finding(f"{len(asked - solved)} of {len(asked)}", says, address)
