"""The sentence and the chart of the first page that say how far models are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leaderboard.board_pages.board_groups import OtherSetting
from leaderboard.board_pages.front_bars import front_bars
from leaderboard.board_pages.headline import headline
from leaderboard.metrics.intervals import Interval
from leaderboard.metrics.scores import Score
from leaderboard.models.model_names import HOUSE
from leaderboard.read_model.boards import BoardRow
from leaderboard.read_model.columns import RankedRow
from leaderboard.read_model.setting import Setting

TIMED = Setting(
    hardware_id="h200x4",
    world_size=4,
    size="standard",
    dtype="bfloat16",
    profile="hardened",
    judge_version="9",
    placement="full",
)
SHARED = replace(TIMED, hardware_id="h100x1", placement="shared")
NOWHERE = OtherSetting()


def _entry(model: str, solved: int, faster: int | None = None, **changes: object) -> BoardRow:
    score = Score(
        scored=80,
        attempted=40,
        correct=solved,
        k=1,
        p=1.0,
        pass_at_1=solved / 80,
        pass_at_1_interval=Interval(0.1, 0.9),
        pass_at_k=solved / 80,
        fast_at_1=None if faster is None else faster / 80,
        fast_at_k=None if faster is None else faster / 80,
        geometric_mean=None,
        is_timed=faster is not None,
    )
    values = {"harness": "zero-shot", "trust": "verified", "date": None, "claimed": False}
    told = {**values, "slug": model, "vendor": "", "url": f"/{model}", **changes}
    return BoardRow(model=model, score=score, **told)  # type: ignore[arg-type]


def _said(
    entries: list[BoardRow], setting: Setting | None, elsewhere: OtherSetting = NOWHERE
) -> str:
    found = headline(entries, setting, elsewhere)
    if found is None:
        return ""
    return " ".join([f"{found.lead} {found.opens} {found.model}{found.says}", *found.notes])


def test_a_timed_board_says_on_how_many_problems_the_best_model_beats_nccl() -> None:
    entries = [
        _entry("House", 60, 58, baseline=True, slug=HOUSE),
        _entry("often right", 30, 2),
        _entry("fast", 20, 10),
        _entry("claims", 25, 12, claimed=True),
    ]
    assert _said(entries, TIMED) == (
        "Not yet. On 4 H200s the best model, fast, beats NCCL on 10 of 80 problems. Kernels "
        "written by hand beat it on 58. Statistically tied with fast: often right. fast was judged "
        "on 40 of the 80 problems; problems not judged yet count as failed."
    )


@pytest.mark.parametrize(
    ("faster", "lead"), [(0, "No."), (39, "Not yet."), (40, "On most problems."), (80, "Yes.")]
)
def test_the_answer_begins_with_what_the_best_model_reaches(faster: int, lead: str) -> None:
    assert _said([_entry("one", 80, faster)], TIMED).startswith(f"{lead} On 4 H200s")


def test_what_counts_as_fast_is_said() -> None:
    one = _entry("one", 80, 12)
    one.score = one.score._replace(p=1.5)
    assert "beats NCCL by more than 1.5× on 12 of 80" in _said([one], TIMED)


def test_what_shared_a_gpu_says_nothing_of_speed() -> None:
    said = _said([_entry("right", 30), _entry("less", 29), _entry("least", 28)], SHARED)
    assert said.startswith(
        "Checked, not timed. On one H100, shared by 4 ranks, the best model, right, is correct on "
        "30 of 80 problems. No clear winner: right and the other 2 submissions are statistically "
        "tied."
    )
    assert "NCCL" not in said


def test_the_names_of_ties_are_few_and_each_is_said_once() -> None:
    entries = [_entry(name, 30) for name in "AABCDE"]
    said = _said([*entries, _entry("far", 2)], SHARED)
    assert "Statistically tied with A: A (zero-shot), B, C and 2 more." in said


def test_where_no_model_was_judged_the_published_best_is_named() -> None:
    claim = _entry("claims", 25, 12, claimed=True, where="8x H100")
    house = _entry("House", 60, 31, baseline=True, slug=HOUSE)
    for said in (_said([claim], None, OtherSetting([house], TIMED)), _said([claim, house], TIMED)):
        assert said == (
            "Nothing judged here yet. By their authors' own check, the best model, claims, beats "
            "NCCL on 12 of 80 problems on 8x H100. On 4 H200s, kernels written by hand beat it on "
            "31 of 80 problems."
        )


@pytest.mark.parametrize("change", [{"baseline": True}, {"harness": "human"}])
def test_people_and_baselines_are_no_models(change: dict[str, object]) -> None:
    assert _said([_entry("someone", 80, 80, **change)], TIMED) == ""


def test_an_empty_board_says_nothing() -> None:
    assert _said([], None) == ""


def test_there_is_a_bar_for_the_best_row_of_each_model_and_one_for_kernels_by_hand() -> None:
    rows = [
        _entry("House", 60, 58, baseline=True, slug=HOUSE, backends=("triton",)),
        _entry("A", 20, 10, backends=("cuda",)),
        _entry("A", 30, 2),
        _entry("B", 20, 12),
        _entry("B", 25, 16, claimed=True),
        _entry("someone", 80, 80, harness="human"),
    ]
    bars = front_bars([RankedRow(place=None, entry=row) for row in rows], "?judge=9")
    assert [(bar.name, bar.faster, bar.correct) for bar in bars] == [
        ("Written by hand", 58, 60),
        ("B", 12, 20),
        ("A", 10, 20),
    ]
    assert [bar.claim for bar in bars] == ["", "20.0", ""]
    assert [bar.interval is None for bar in bars] == [True, False, False]
    assert (bars[2].note, bars[2].url) == ("cuda, zero-shot", "/A?judge=9")
    assert bars[2].says == "A: 10 faster than NCCL, 20 correct"
    assert front_bars([RankedRow(place=None, entry=rows[0])], "") == []


def test_bars_of_what_was_only_checked_have_no_speed() -> None:
    (bar,) = front_bars([RankedRow(place=None, entry=_entry("A", 20))], "")
    assert (bar.faster, bar.wide_faster, bar.wide_correct) == (None, "", "25.0")
    assert bar.says == "A: 20 correct"
