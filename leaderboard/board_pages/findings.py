"""Says what the site found, in numbers that lead to their pages."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from itertools import starmap
from typing import NamedTuple

from leaderboard.board_pages.mechanism_kernels import nccl_speeds, own_of
from leaderboard.kit.links import url
from leaderboard.metrics.difficulty import FEWEST_MODELS, UNSOLVED, Difficulty
from leaderboard.models import ProblemAggregate
from leaderboard.read_model import boards
from leaderboard.read_model.boards import BoardRow
from leaderboard.read_model.profile_comparison import passing, settings_of_both
from leaderboard.read_model.setting import Setting, machine_in_words


class Finding(NamedTuple):
    """Holds a number, what it says, and the page that shows it."""

    number: str
    says: str
    url: str


def findings(rows: Sequence[BoardRow], known: Sequence[Setting]) -> list[Finding]:
    """Return the findings that the data allow: of kernels written by hand, of PKB's own check, of
    kernels that call NCCL, of problems that no model solved. `rows` are those of the board."""
    return [*_of_hand(rows), *_of_checks(known), *_of_nccl(rows), *_of_unsolved(known)]


def _of_hand(rows: Sequence[BoardRow]) -> Iterator[Finding]:
    """Yield the median speedup of this site's own kernels."""
    own = [row.speeds for row in rows if row.house and row.score.is_timed]
    if speedups := [one for speeds in own for one in (*speeds.calling, *speeds.moving)]:
        says = "median speedup over NCCL, and how"
        yield Finding(f"{statistics.median(speedups):.2g}× by hand", says, url("beats-nccl"))


def _of_checks(known: Sequence[Setting]) -> Iterator[Finding]:
    setting = next(iter(settings_of_both(known)), None)
    upstream, failing = passing(setting) if setting else (0, 0)
    if setting and failing:
        says = "models' kernels that pass PKB's own check fail on hidden inputs"
        yield Finding(
            f"{failing} of {upstream}", f"{says}, on {machine_in_words(setting)}", url("profiles")
        )


def _of_nccl(rows: Sequence[BoardRow]) -> Iterator[Finding]:
    """Yield both medians, of the kernels that the page of mechanisms is about."""
    timed = [row for row in rows if row.score.is_timed]
    speeds = nccl_speeds(row.speeds for row in own_of(timed))
    if speeds:
        says = f"median speedup of correct kernels; those that call NCCL reach {speeds[0]:.2g}×"
        yield Finding(f"{speeds[1]:.2g}× without NCCL", says, url("mechanisms"))


def _of_unsolved(known: Sequence[Setting]) -> Iterator[Finding]:
    """Yield how many problems are unsolved, as the list of problems counts them."""
    check = boards.checking(known)
    if check is None:
        return
    own = ProblemAggregate.objects.filter(**vars(check), problem__scored=True).order_by()
    found = list(starmap(Difficulty, own.values_list("models_solved", "models_tried")))
    bands = [one.difficulty for one in found if one.difficulty]
    if unsolved := bands.count(UNSOLVED):
        says = f"problems that at least {FEWEST_MODELS} models tried are solved by none"
        address = f"{url('problems')}?difficulty={UNSOLVED}"
        yield Finding(f"{unsolved} of {len(bands)}", says, address)
