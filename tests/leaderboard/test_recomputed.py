"""Pages show the numbers that a reader computes from a snapshot with pandas, by the words of
docs/data.md and docs/evaluation.md and without the site's code."""

from __future__ import annotations

import html
import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from django.core.management import call_command
from django.test import Client

SETTING: dict[str, str | int] = {
    **{"hardware": "h200x2", "world_size": 2, "size": "standard", "dtype": "bfloat16"},
    **{"profile": "hardened", "judge_version": "9", "placement": "full"},
}
CHECKED = {**SETTING, "hardware": "h200x1", "world_size": 4, "placement": "shared"}
HOUSE, REFERENCE, BEST = "House kernels", "PyTorch + NCCL", "GPT-5.5"


@dataclass(frozen=True)
class Exported:
    """Holds the problems of a snapshot, and its runs that count: of public submissions, of the last
    step of each attempt."""

    problems: pd.DataFrame
    runs: pd.DataFrame

    @property
    def best(self) -> int:
        """Return the one submission of the best model in SETTING."""
        timed = self.found(SETTING)
        (found,) = {*timed[timed.name == BEST].submission}
        return int(found)

    def scored(self, setting: dict[str, str | int]) -> pd.Series:
        is_there = self.problems.scored & (self.problems.ranked_from <= setting["world_size"])
        return self.problems[is_there].problem

    def found(self, setting: dict[str, str | int]) -> pd.DataFrame:
        """Return the newest run of each kernel in a setting."""
        named = pd.Series(setting)
        of = self.runs[(self.runs[named.index] == named).all(axis=1)]
        return newest(of[of.problem.isin(self.scored(setting))])

    def judged(self) -> pd.DataFrame:
        """Return those of SETTING, with the kernels that failed every check of the same inputs on
        one GPU and were never timed, of submissions that were."""
        timed, alike = self.found(SETTING), ["size", "dtype", "profile"]
        same = (self.runs[alike] == pd.Series(SETTING)[alike]).all(axis=1)
        checks = self.runs[same & (self.runs.placement == "shared") & (self.runs.device == "cuda")]
        is_lost = ~checks.kernel.isin([*checks[checks.verdict == "ok"].kernel, *timed.kernel])
        is_known = checks.submission.isin(timed.submission)
        is_known &= checks.problem.isin(self.scored(SETTING))
        return pd.concat([timed, newest(checks[is_lost & is_known])])


def newest(runs: pd.DataFrame) -> pd.DataFrame:
    return runs.sort_values("created_at").groupby("kernel").tail(1)


def read(folder: Path) -> Exported:
    models, submissions, problems, kernels, runs = (
        pd.read_parquet(folder / f"{name}.parquet")
        for name in ("models", "submissions", "problems", "kernels", "runs")
    )
    who = models[["model", "name", "is_baseline"]]
    public = submissions[submissions.ranked][["submission", "model"]].merge(who, on="model")
    last = kernels.groupby(["submission", "problem", "attempt"]).step.transform("max")
    kernels = kernels[kernels.step == last][["kernel", "submission"]].merge(public)
    runs = runs[runs.counts].merge(kernels, on=["kernel", "submission"])
    return Exported(problems, runs.merge(problems[["problem", "category"]], on="problem"))


def share(value: float) -> str:
    return f"{100 * value:.1f}"


def ratio(value: float) -> str:
    """Three significant digits, as pages write factors below ten."""
    return f"{value:.2f}×" if value >= 1 else f"{value:.3f}×"


def sure(runs: pd.DataFrame) -> int:
    """How many are correct, and faster than the reference with their whole interval."""
    return int(((runs.verdict == "ok") & (runs.speedup_low > 1)).sum())


def correct(runs: pd.DataFrame) -> pd.DataFrame:
    return runs[runs.verdict == "ok"]


@pytest.fixture
def exported(db: None, tmp_path: Path, settings: Any) -> Exported:
    settings.STATE_DIR = tmp_path
    for command in ("sync_problems", "import_published", "import_reports"):
        call_command(command, stdout=io.StringIO())
    call_command("make_snapshot", "now", stdout=io.StringIO())
    return read(tmp_path / "snapshots/now")


@pytest.mark.server
@pytest.mark.slow
def test_pages_show_what_a_snapshot_says(exported: Exported, client: Client) -> None:
    told = {
        "/": [*answers(exported), *rows(exported)],
        "/profiles": profiles(exported),
        "/mechanisms": mechanisms(exported),
        "/beats-nccl": by_hand(exported),
        f"/submissions/{exported.best}": submission(exported),
    }
    wrong = []
    for address, numbers in told.items():
        page = client.get(address).text
        text = re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page)))
        wrong += [f"{address}: {one}" for one in numbers if one not in text]
    assert not wrong
    assert sum(map(len, told.values())) >= 20
    check_tables(exported, client)


def check_tables(exported: Exported, client: Client) -> None:
    """Check the CSV twins of pages: every row of the board, categories, difficulties."""

    def table(address: str) -> pd.DataFrame:
        return pd.read_csv(io.StringIO(client.get(address).text))

    board = table("/leaderboard.csv?columns=all").set_index("submission")
    for number, own in exported.judged().groupby("submission"):
        row, right = board.loc[number], correct(own)
        assert (row.attempted, row.correct) == (own.problem.nunique(), right.problem.nunique())
        assert row.pass1 == pytest.approx(len(right) / len(exported.scored(SETTING)))
        assert row.fast1 == pytest.approx(sure(own) / len(exported.scored(SETTING)))
        assert row.speedup == pytest.approx(np.exp(np.log(right.speedup).mean()))
        assert row.median_speedup == pytest.approx(right.speedup.median())
        assert row.utilisation == pytest.approx(right.utilisation.median())
    shown = table("/problems.csv").difficulty.value_counts().to_dict()
    assert shown == difficulties(exported)
    sizes = exported.problems[exported.problems.problem.isin(exported.scored(SETTING))]
    own = exported.judged()
    own = own[own.submission == exported.best]
    categories = table("/categories.csv")
    mine = categories[(categories.model == own.name.iloc[0]) & ~categories.claimed]
    for category, kernels in own.groupby("category"):
        row = mine[mine.category == category].iloc[0]
        size = (sizes.category == category).sum()
        assert (row.problems, row.pass1) == (size, pytest.approx(len(correct(kernels)) / size))
        assert row.fast1 == pytest.approx(sure(kernels) / size)


def answers(exported: Exported) -> list[str]:
    """The sentence of the first page, its chart and the findings below the table."""
    judged, scored = exported.judged(), len(exported.scored(SETTING))
    of_models = judged[~judged.is_baseline]
    fast = {number: sure(own) for number, own in of_models.groupby("submission")}
    best = of_models[of_models.submission == max(fast, key=lambda number: fast[number])]
    house = judged[judged.name == HOUSE]
    hard = difficulties(exported)
    bars = [
        f"{sure(own)} faster {len(correct(own))} correct of {own.problem.nunique()}"
        for own in (best, house)
    ]
    return [
        f"the best model, {best.name.iloc[0]} , beats NCCL on {sure(best)} of {scored} problems",
        f"Kernels written by hand beat it on {sure(house)}.",
        f"was judged on {best.problem.nunique()} of the {scored} problems",
        f"{hard['unsolved']} of {sum(hard.values())} problems",
        f"{len(correct(of_models))} of {len(of_models)} are correct",
        *bars,
    ]


def rows(exported: Exported) -> list[str]:
    """The rows of the first page's table: faster, correct, median, share of the limit."""
    scored = len(exported.scored(SETTING))
    return [
        f" {share(sure(own) / scored)} {share(len(right) / scored)}"
        f" {ratio(right.speedup.median())} {share(right.utilisation.median())} verified"
        for _, own in exported.judged().groupby("submission")
        for right in [correct(own)]
    ]


def difficulties(exported: Exported) -> dict[str, int]:
    """How many problems are how hard: by the models that solve them, of two at least that tried."""
    checked = exported.found(CHECKED)
    checked = checked[~checked.is_baseline]
    solved = checked.assign(ok=checked.verdict == "ok").groupby(["problem", "name"]).ok.any()
    rates = solved.groupby("problem").agg(["mean", "count"])
    rates = rates[rates["count"] >= 2]["mean"]
    names = ["unsolved", "hard", "medium", "easy"]
    kinds = pd.cut(rates, [-1, 0, 1 / 3, 2 / 3, 1], labels=names)
    return {str(kind): int(count) for kind, count in kinds.value_counts().items()}


def profiles(exported: Exported) -> list[str]:
    both = [
        found[~found.is_baseline].set_index(["submission", "problem"]).verdict == "ok"
        for found in (exported.found({**CHECKED, "profile": "upstream"}), exported.found(CHECKED))
    ]
    found = pd.concat(both, axis=1, join="inner", keys=["theirs", "hidden"])
    lost = int((found.theirs & ~found.hidden).sum())
    return [
        f"{lost} of {int(found.theirs.sum())} kernels that pass PKB's check fail on hidden inputs",
        f"{len(found)} problems were judged under both",
        f"{int((~found.theirs & found.hidden).sum())} that fail it are correct on hidden inputs",
        f"{int((found.theirs & found.hidden).sum())} of {len(found)} pass both",
    ]


def mechanisms(exported: Exported) -> list[str]:
    judged = exported.judged()
    right = correct(judged[~judged.is_baseline])
    calls = right.mechanisms.map(lambda tags: "nccl" in tags)
    with_it, without = right[calls], right[~calls]
    return [
        f"Kernels that call NCCL reach {ratio(with_it.speedup.median())},"
        f" those that do not {ratio(without.speedup.median())}",
        f"{len(right)} correct kernels",
        f"NCCL {len(with_it)} {share(len(with_it) / len(right))} {with_it.problem.nunique()}"
        f" {ratio(with_it.speedup.median())} {share(sure(with_it) / len(with_it))}",
    ]


def by_hand(exported: Exported) -> list[str]:
    judged = exported.judged()
    own = judged[judged.name == HOUSE]
    return [
        f"Kernels written by hand beat NCCL on {sure(own)} of {len(own)} problems",
        f"median speedup is {ratio(own.speedup.median())}",
        f"reach {share(own.utilisation.median())} % of the hardware's limit",
        f"NCCL {share((own.bound_us / own.baseline_us).median())} %",
    ]


def submission(exported: Exported) -> list[str]:
    judged, scored = exported.judged(), len(exported.scored(SETTING))
    own = judged[judged.submission == exported.best]
    right = correct(own)
    return [
        f"Correct {len(right)} /{scored} {own.problem.nunique()} attempted",
        f"pass@1 {share(len(right) / scored)} %",
        f"fast₁@1 {share(sure(own) / scored)} %",
        f"Speedup {ratio(np.exp(np.log(right.speedup).mean()))} geometric mean",
        f"median {ratio(right.speedup.median())}",
        f"{len(right)} of {len(own)} are correct",
    ]
