"""Computes summaries anew from runs as pandas frames, to prove the stored ones right.

A web worker never loads this module.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from leaderboard.metrics import board_numbers, thresholds
from leaderboard.models import LeaderboardRow, ProblemAggregate, Run, Submission, Summary
from leaderboard.models.choices import comparable_judge
from leaderboard.models.runs import SETTING
from leaderboard.read_model.kernel_filters import parts_of
from leaderboard.read_model.leaderboard_rows import SUMS, Totals, cells_in

NAMES = {
    "kernel__submission_id": "submission_id",
    "kernel__problem_id": "problem_id",
    "kernel__problem__scored": "scored",
    "kernel__problem__category": "category",
    "kernel__problem__ranked_from": "ranked_from",
    "hardware__device": "device",
    "kernel__attempt": "attempt",
    "kernel__step": "step",
    "kernel__making__output_tokens": "output_tokens",
    "kernel__making__cost_usd": "usd",
    "kernel__making__answers_without_usage": "uncounted",
}
ROW = ["submission_id", *SETTING]
IN_CATEGORY = [*ROW, "category"]
PLACE = ["submission_id", "problem_id", *SETTING]
MEDIANS, TAKEN = list(board_numbers.MEASURED), list(board_numbers.TAKEN)
MEDIAN_OF_ROWS = [*MEDIANS, "median_speedup"]
NUMBERS_OF_ROWS = [number.key for number in board_numbers.SUMMED]
TOTALS = [*SUMS, "made", "log_squares", *NUMBERS_OF_ROWS]
FACTS = ["made", "correct", "best_speedup"]
CELL_FACTS = [*FACTS, "best_low", "speedups", "lows"]
PROBLEM = ["problem_id", *SETTING]
PROBLEM_COUNTS = ["submissions", "solved", "made", "correct", "faster", "baseline_runs"]
PROBLEM_FACTS = [*PROBLEM_COUNTS, "best_speedup", "utilisation", "usual_utilisation", "baseline_us"]
NUMBERS = ("speedup", "speedup_low", *MEDIANS, "baseline_us")
ABOVE = ["fast_at_1", "likely_fast_at_1", "faster", "likely_faster"]
SUM_OF_ALL = functools.partial(pd.Series.sum, skipna=False)  # not known where one is not
SOME_P, TOLERANCE = 1.5, 1e-9


def counted_runs() -> pd.DataFrame:
    """Return one row a run that says something about its kernel."""
    columns = [*NAMES, "id", "finished_at", "verdict", *NUMBERS, *SETTING]
    found = _frame(Run.objects.counted().values_list(*columns), columns).rename(columns=NAMES)
    return found.assign(id=found["id"].astype(str))


def counted_attempts() -> pd.DataFrame:
    """Return of each attempt in each setting the run that counts; numbers of correct ones only."""
    newest = counted_runs().sort_values(["step", "finished_at", "id"])
    attempts = newest.drop_duplicates([*PLACE, "attempt"], keep="last")
    correct = attempts["verdict"].eq("ok")
    numbers = {name: attempts[name].where(correct).astype(float) for name in NUMBERS}
    taken = attempts[TAKEN].astype(float)
    taken["output_tokens"] = taken["output_tokens"].mask(attempts["uncounted"].astype(float).gt(0))
    own = attempts.assign(correct=correct, **numbers, **{name: taken[name] for name in TAKEN})
    return pd.concat([own, failed_checks(own)], ignore_index=True)


def failed_checks(attempts: pd.DataFrame) -> pd.DataFrame:
    """Return the attempts that count as failed where their submission was timed: those that did not
    run there, and failed every check of the same size, dtype, inputs and checks."""
    shared = attempts[attempts["placement"].eq("shared")]
    is_timed = attempts["placement"].eq("full") & attempts["scored"].astype(bool)
    timed = attempts.loc[is_timed, [*ROW, "device"]].drop_duplicates()
    alike = ["submission_id", "device", "size", "dtype", "profile", "checks"]
    timed = timed.assign(checks=[comparable_judge(j, "shared") for j in timed["judge_version"]])
    shared = shared.assign(checks=shared["judge_version"], order=range(len(shared)))
    of_setting = ["hardware_id", "world_size", "judge_version", "placement"]
    pairs = timed.merge(shared.drop(columns=of_setting), on=alike)
    pairs = pairs[pairs["world_size"] >= pairs["ranked_from"]]
    one = [*PLACE, "attempt"]
    pairs = pairs.assign(passed=pairs.groupby(one)["correct"].transform("any").astype(bool))
    ran = attempts[PLACE].drop_duplicates().assign(here=True)
    pairs = pairs.merge(ran, on=PLACE, how="left")
    waits = pairs.groupby(PLACE)["passed"].transform("any").astype(bool) & pairs["here"].isna()
    failed = pairs[~pairs["passed"] & ~waits]
    failed = failed.sort_values("order").drop_duplicates(one)
    ran = attempts[one].assign(ran=True)
    failed = failed.merge(ran, on=one, how="left")
    return failed.loc[failed["ran"].isna(), attempts.columns]


def expected_summaries() -> pd.DataFrame:
    """Return what the summary should hold: PLACE as index, FACTS as columns."""
    groups = counted_attempts().groupby(PLACE)
    return groups.agg(
        made=("attempt", "size"), correct=("correct", "sum"), best_speedup=("speedup", "max")
    )


def stored_summaries() -> pd.DataFrame:
    """Return what the summary does hold, in the shape of `expected_summaries`."""
    columns = [*PLACE, *FACTS]
    frame = _frame(Summary.objects.values_list(*columns), columns).set_index(PLACE)
    return frame.astype({"best_speedup": float})


def expected_rows(row: list[str]) -> pd.DataFrame:
    """Return what leaderboard rows should sum up to: TOTALS by `row`, ROW or IN_CATEGORY."""
    attempts = counted_attempts()
    attempts = attempts[attempts["scored"].astype(bool)].sort_values("speedup", ascending=False)
    attempts = attempts.assign(
        faster=attempts["speedup_low"].gt(1.0),
        likely_faster=attempts["speedup"].gt(1.0),
        log_speedup=np.log(attempts["speedup"]),
        **{name: attempts[name].where(attempts["speedup"].notna()) for name in MEDIANS},
        credit=attempts["utilisation"].clip(upper=1.0).mask(attempts["speedup"].isna(), 0.0),
    )
    problems = attempts.groupby([*PLACE, "category"]).agg(
        made=("attempt", "size"),
        right=("correct", "sum"),
        faster=("faster", "sum"),
        likely_faster=("likely_faster", "sum"),
        log_speedup=("log_speedup", "mean"),
        median_speedup=("log_speedup", _mean_speedup),
        **{name: (name, _of_the_fastest) for name in MEDIANS},
        **{name: (name, SUM_OF_ALL) for name in (*TAKEN, "credit")},
    )
    return _summed(problems.reset_index(), row, dict(Submission.objects.values_list("pk", "k")))


def _mean_speedup(logs: pd.Series[float]) -> float:
    return math.exp(logs.mean())


def _of_the_fastest(values: pd.Series[float]) -> float:
    """Return the first value: rows come fastest first, those without a speedup last."""
    return float(values.iloc[0])


def _summed(problems: pd.DataFrame, row: list[str], drawn: dict[int, int]) -> pd.DataFrame:
    """Return TOTALS over the problems of each row."""
    k = problems["submission_id"].map(drawn)
    made, right = problems["made"], problems["right"]
    problems = problems.assign(
        attempted=1,
        correct=right.gt(0),
        pass_at_1=right / made,
        pass_at_k=[_chance(*row) for row in zip(made, right, k, strict=True)],
        fast_at_1=problems["faster"] / made,
        fast_at_k=[_chance(*row) for row in zip(made, problems["faster"], k, strict=True)],
        likely_fast_at_1=problems["likely_faster"] / made,
        credit=problems["credit"] / made,
        log_squares=problems["log_speedup"] ** 2,
    )
    rows = problems.groupby(row)
    more = {name: rows[name].agg(SUM_OF_ALL) for name in ("made", *TAKEN, "credit")}
    return rows[[*SUMS, "log_squares"]].sum().assign(**rows[MEDIAN_OF_ROWS].median(), **more)


def _chance(made: int, right: int, k: int) -> float:
    """Return the chance that of k attempts one is right, by the product instead of binomials."""
    drawn_from = max(made, k)
    return 1.0 - math.prod(1.0 - k / (drawn_from - i) for i in range(right) if drawn_from > i)


def stored_rows() -> pd.DataFrame:
    """Return what leaderboard rows do sum up to, in the shape of `expected_rows(ROW)`."""
    rows = [
        (*row, *_values(Totals.of(json.loads(text))))
        for *row, text in LeaderboardRow.objects.values_list(*ROW, "total")
    ]
    return pd.DataFrame.from_records(rows, columns=[*ROW, *TOTALS]).set_index(ROW)


def stored_in_categories() -> pd.DataFrame:
    """Return the same in each category, in the shape of `expected_rows(IN_CATEGORY)`."""
    rows = [
        (*row, category, *_values(Totals.of(totals)))
        for *row, text in LeaderboardRow.objects.values_list(*ROW, "by_category")
        for category, totals in json.loads(text).items()
    ]
    return pd.DataFrame.from_records(rows, columns=[*IN_CATEGORY, *TOTALS]).set_index(IN_CATEGORY)


def _values(totals: Totals) -> tuple[float | None, ...]:
    numbers = (totals.numbers[name] for name in NUMBERS_OF_ROWS)
    return (*totals.sums, totals.made, totals.log_squares, *numbers)


def expected_cells() -> pd.DataFrame:
    """Return what cells of leaderboard rows should hold: PLACE as index, CELL_FACTS as columns."""
    attempts = counted_attempts()
    attempts = attempts[attempts["scored"].astype(bool)]
    fastest_first = attempts.sort_values(["speedup", "speedup_low"], ascending=False)
    return fastest_first.groupby(PLACE).agg(
        made=("attempt", "size"),
        correct=("correct", "sum"),
        best_speedup=("speedup", "max"),
        best_low=("speedup_low", _of_the_fastest),
        speedups=("speedup", "sum"),
        lows=("speedup_low", "sum"),
    )


def stored_cells() -> pd.DataFrame:
    """Return what they do hold, in the shape of `expected_cells`."""
    rows = []
    stored = LeaderboardRow.objects.values_list(*ROW, "cells", "outcomes")
    for submission, *setting, text, outcomes in stored:
        pairs = zip(cells_in(text), parts_of(json.loads(outcomes)), strict=True)
        for cell, known in pairs:
            facts = (cell.made, cell.correct, cell.best_speedup, cell.best_low)
            sums = (math.fsum(known.speedups), math.fsum(known.lows))
            rows.append((submission, cell.problem, *setting, *facts, *sums))
    return pd.DataFrame.from_records(rows, columns=[*PLACE, *CELL_FACTS]).set_index(PLACE)


def above_threshold() -> pd.DataFrame:
    """Return what leaderboard rows should count at a p that is not 1: ROW as index."""
    attempts = counted_attempts()
    attempts = attempts[attempts["scored"].astype(bool)]
    attempts = attempts.assign(
        faster=attempts["speedup_low"].gt(SOME_P), likely_faster=attempts["speedup"].gt(SOME_P)
    )
    problems = attempts.groupby(PLACE).agg(
        made=("attempt", "size"), faster=("faster", "sum"), likely_faster=("likely_faster", "sum")
    )
    shares = problems.assign(
        fast_at_1=problems["faster"] / problems["made"],
        likely_fast_at_1=problems["likely_faster"] / problems["made"],
    )
    return shares.groupby(ROW)[ABOVE].sum()


def stored_above_threshold() -> pd.DataFrame:
    """Return what they do count, in the shape of `above_threshold`."""
    rows = []
    for *row, text in LeaderboardRow.objects.values_list(*ROW, "by_threshold"):
        found = thresholds.at(SOME_P, json.loads(text))
        rows.append((*row, *(getattr(found, name) for name in ABOVE)))
    return pd.DataFrame.from_records(rows, columns=[*ROW, *ABOVE]).set_index(ROW)


def shown_attempts() -> pd.DataFrame:
    """Return the attempts of submissions that boards show, the fastest first."""
    ranked = dict(Submission.objects.ranked().values_list("pk", "model__is_baseline"))
    attempts = counted_attempts().query("submission_id in @ranked")
    attempts = attempts.assign(baseline=attempts["submission_id"].map(ranked).astype(bool))
    return attempts.sort_values("speedup", ascending=False)


def parted() -> pd.DataFrame:
    """Return what each submission should add to aggregates of problems, by PLACE."""
    groups = shown_attempts().groupby(PLACE, sort=False)
    return groups.agg(
        baseline=("baseline", "max"),
        made=("attempt", "size"),
        correct=("correct", "sum"),
        best_speedup=("speedup", "max"),
        best_low=("speedup_low", _of_the_fastest),
        utilisation=("utilisation", _of_the_fastest),
    )


def expected_problems() -> pd.DataFrame:
    """Return what problem aggregates should hold: PROBLEM as index, PROBLEM_FACTS as columns."""
    found = parted().reset_index()
    every = found[PROBLEM].drop_duplicates().set_index(PROBLEM)
    fastest = found[~found["baseline"]].assign(
        faster=found["best_low"].gt(1.0), solved=found["correct"].gt(0)
    )
    groups = fastest.sort_values("best_speedup", ascending=False).groupby(PROBLEM, sort=False)
    counted = groups.agg(
        submissions=("best_speedup", "size"),
        solved=("solved", "sum"),
        best_speedup=("best_speedup", "max"),
        utilisation=("utilisation", _of_the_fastest),
        usual_utilisation=("utilisation", "median"),
        made=("made", "sum"),
        correct=("correct", "sum"),
        faster=("faster", "sum"),
    )
    taken = shown_attempts().groupby(PLACE)["baseline_us"].agg(["count", "median"])
    sums = {"baseline_runs": ("count", "sum"), "baseline_us": ("median", "median")}
    every = every.join(counted).join(taken.map(lambda v: round(v, 3)).groupby(PROBLEM).agg(**sums))
    return every.fillna(dict.fromkeys(PROBLEM_COUNTS, 0))


def stored_problems() -> pd.DataFrame:
    """Return what they do hold, in the shape of `expected_problems`."""
    columns = [*PROBLEM, *PROBLEM_FACTS]
    return _frame(ProblemAggregate.objects.values_list(*columns), columns).set_index(PROBLEM)


def differences() -> list[str]:
    """Return a line for each row that is missing, surplus or wrong."""
    return [
        *_differences(expected_summaries(), stored_summaries(), FACTS),
        *_differences(expected_rows(ROW), stored_rows(), TOTALS),
        *_differences(expected_rows(IN_CATEGORY), stored_in_categories(), TOTALS),
        *_differences(expected_cells(), stored_cells(), CELL_FACTS),
        *_differences(above_threshold(), stored_above_threshold(), ABOVE),
        *_differences(expected_problems(), stored_problems(), PROBLEM_FACTS),
    ]


def _differences(expected: pd.DataFrame, found: pd.DataFrame, columns: list[str]) -> list[str]:
    wrong = []
    for place, row in expected.join(found, how="outer", suffixes=("_e", "_f")).iterrows():
        pairs = [(_plain(row[f"{name}_e"]), _plain(row[f"{name}_f"])) for name in columns]
        if not all(_same(*pair) for pair in pairs):
            should, does = zip(*pairs, strict=True)
            wrong.append(f"{place}: expected {list(should)}, found {list(does)}")
    return wrong


def _same(expected: float | None, found: float | None) -> bool:
    if expected is None or found is None:
        return expected is found
    return math.isclose(expected, found, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def _frame(rows: Iterable[tuple[Any, ...]], columns: list[str]) -> pd.DataFrame:
    return pd.DataFrame.from_records(list(rows), columns=columns)


def _plain(value: float | None) -> float | None:
    return None if value is None or pd.isna(value) else float(value)
