"""The sentences of the first page that say how far models are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leaderboard.board_pages.board_groups import OtherSetting
from leaderboard.board_pages.headline import answers
from leaderboard.metrics.intervals import Interval
from leaderboard.metrics.scores import Score
from leaderboard.read_model.boards import BoardRow
from leaderboard.read_model.published_claims import Claim
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
CLAIM = Claim(
    publication=1,
    date=None,
    citation="",
    model="A",
    slug="a",
    vendor="",
    harness="zero-shot",
    category=None,
    problems=80,
    correct_at_1=20,
    correct_at_3=None,
    fast_at_1=10,
    fast_at_3=None,
    payload='{"setting": {"hardware": "8 x H100"}}',
)


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
    )
    values = {"harness": "zero-shot", "trust": "verified", "date": None, "claimed": False}
    told = {**values, "slug": model, "vendor": "", "url": f"/{model}", **changes}
    return BoardRow(model=model, score=score, **told)  # type: ignore[arg-type]


def _said(
    entries: list[BoardRow],
    setting: Setting | None,
    claims: list[Claim],
    elsewhere: OtherSetting = NOWHERE,
) -> list[str]:
    found = answers(entries, claims, setting, elsewhere)
    return [f"{one.opens} {one.model}{one.says}".replace("\u00a0", " ") for one in found]


def test_the_best_of_what_was_published_and_of_what_was_judged_are_named() -> None:
    entries = [
        _entry("often right", 30, 2),
        _entry("fast", 20, 10),
        _entry("claims", 25, 12, claimed=True),
    ]
    assert _said(entries, TIMED, [CLAIM]) == [
        "Published: the best model, claims (zero-shot), solves 25 of 80 problems and beats NCCL on "
        "12 (15.0 %, 95 % interval 8.8 % to 24.4 %), by the check of those who published it on "
        "8 x H100.",
        "Timed here on secret inputs: the best, fast (zero-shot), solves 20 of 80 and beats NCCL "
        "on 10 (12.5 %, 95 % interval 6.9 % to 21.5 %), of 40 judged, on 4 ranks of "
        "h200x4. Not distinguishable from it: often right (zero-shot).",
    ]


def test_what_shared_a_gpu_says_nothing_of_speed() -> None:
    (said,) = _said([_entry("right", 30), _entry("less", 29)], SHARED, [])
    assert said.startswith("Checked here on secret inputs: the best, right (zero-shot), solves 30")
    assert "NCCL" not in said
    assert said.endswith(
        "4 ranks of h100x1 shared a GPU, nothing was timed. "
        "Not distinguishable from it: less (zero-shot)."
    )
    (said,) = _said([_entry("right", 30)], replace(SHARED, profile="upstream"), [])
    assert said.startswith("Checked here on PKB's own inputs: the best, right")


def test_submissions_of_one_model_and_harness_are_told_apart() -> None:
    entries = [
        _entry("A", 30, submission=7, backends=("cuda",)),
        _entry("B", 29, submission=8, backends=("cuda",)),
        _entry("A", 28, submission=9, backends=("triton", "cuda")),
        _entry("A", 27, submission=10, harness="agentic"),
    ]
    (said,) = _said(entries, SHARED, [])
    assert ": the best, A (zero-shot, cuda, no. 7), solves 30" in said
    assert said.endswith(
        "Not distinguishable from it: B (zero-shot), A (zero-shot, triton, cuda, no. 9), "
        "A (agentic)."
    )


def test_where_no_model_was_timed_the_sites_own_kernels_are_named() -> None:
    house = _entry("House kernels", 60, 31, baseline=True, slug="house-kernels")
    elsewhere = OtherSetting([house], TIMED, "?x=1")
    _, said = _said([_entry("right", 30)], SHARED, [], elsewhere)
    assert said.startswith("Timed here: no model yet. This site's own House kernels solve 60 of 80")
    assert said.endswith(
        "and beat NCCL on 31 (38.8 %, 95 % interval 28.8 % to 49.7 %), on 4 ranks of h200x4."
    )
    timed = OtherSetting([house, _entry("timed", 3, 2)], TIMED, "")
    assert _said([], SHARED, [], timed)[0].startswith(
        "Timed here on secret inputs: the best, timed"
    )


@pytest.mark.parametrize("change", [{"baseline": True}, {"harness": "human"}])
def test_people_and_baselines_are_no_models(change: dict[str, object]) -> None:
    assert _said([_entry("someone", 80, 80, **change)], TIMED, []) == []


def test_an_empty_board_says_nothing() -> None:
    assert _said([], None, []) == []
