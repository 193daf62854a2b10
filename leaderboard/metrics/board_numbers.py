"""Declares each number of a board once: name, unit, direction, sum, look and meaning. Pure.

Summaries, boards, categories, CSV, JSON, snapshots and explanations follow from NUMBERS;
docs/architecture.md says how to add one.
"""

from __future__ import annotations

from functools import partial

from leaderboard.metrics.number import Number, Summing, known
from leaderboard.metrics.scores import geometric_mean, roofline_credit

SHARE = partial(Number, unit="%", is_share=True)
NUMBERS = (
    SHARE(
        key="pass1",
        of="score.pass_at_1",
        label="pass@1",
        plain="Correct",
        group="right",
        cell="share",
        in_category=True,
        ends=True,
        snapshot="pass_at_1",
        means="Chance that a sampled kernel is correct, mean over all scored problems.",
        anchor="pass-at-k",
    ),
    SHARE(
        key="passk",
        of="score.pass_at_k",
        label="pass@k",
        group="right",
        cell="share",
        in_category=True,
        snapshot="pass_at_k",
        means="Chance that at least one of k sampled kernels is correct.",
        anchor="pass-at-k",
    ),
    Number(
        key="correct",
        of="score.correct",
        label="Correct",
        unit="problems",
        group="right",
        cell="fraction",
        in_category=True,
        snapshot="correct",
        kind="int",
        means="Problems with a correct kernel.",
    ),
    Number(
        key="attempted",
        of="score.attempted",
        label="Judged",
        unit="problems",
        group="right",
        cell="fraction",
        snapshot="attempted",
        kind="int",
        means="Problems with at least one judged kernel. One left out counts as failed.",
        anchor="coverage",
    ),
    Number(key="p", of="score.p"),
    SHARE(
        key="fast1",
        of="score.fast_at_1",
        label="fast₁@1",
        plain="Faster than NCCL",
        group="fast",
        cell="fast",
        is_timed=True,
        in_category=True,
        ends=True,
        snapshot="fast_at_1",
        means="Chance that a sampled kernel is correct and, with the whole interval of its "
        "speedup, more than p times as fast as the reference.",
        anchor="fast-p",
    ),
    Number(key="fast1_likely", of="score.likely_fast_at_1"),
    SHARE(
        key="fastk",
        of="score.fast_at_k",
        label="fast₁@k",
        group="fast",
        cell="share",
        is_timed=True,
        in_category=True,
        snapshot="fast_at_k",
        means="Chance that at least one of k sampled kernels is correct and as fast.",
        anchor="fast-p",
    ),
    Number(
        key="speedup",
        of="score.geometric_mean",
        label="Speedup",
        unit="geo. mean",
        group="fast",
        cell="speedup",
        is_timed=True,
        in_category=True,
        ends=True,
        snapshot="geometric_mean",
        means="Geometric mean over problems with a correct kernel, with its 95 % interval from "
        "three on. It says nothing of the problems that failed, so it stands next to the shares.",
        anchor="speedup",
    ),
    Number(
        key="median_speedup",
        summed=Summing.MEDIAN,
        of_kernels=lambda made, measured: geometric_mean(known(measured["speedup"])),
        label="Speedup",
        plain="Speedup",
        unit="median",
        group="fast",
        cell="ratio",
        is_timed=True,
        in_category=True,
        snapshot="median_speedup",
        means="Median over problems with a correct kernel. A single very slow or very fast kernel "
        "hardly moves it.",
        anchor="speedup",
    ),
    SHARE(
        key="credit",
        summed=Summing.MEAN,
        of_kernels=lambda made, measured: roofline_credit(made, measured["utilisation"]),
        label="Roofline credit",
        group="fast",
        cell="share",
        is_timed=True,
        ends=True,
        snapshot="roofline_credit",
        means="A correct kernel earns the least time that the hardware allows over its own time, "
        "at most 1, a wrong one 0. Mean over all scored problems, unless a bound is not known.",
        anchor="roofline-credit",
    ),
    Number(
        key="utilisation",
        summed=Summing.MEDIAN,
        label="Of roofline",
        plain="Of the hardware limit",
        unit="%, median",
        group="fast",
        cell="per_cent",
        is_timed=True,
        in_category=True,
        snapshot="utilisation",
        means="The least time that the hardware allows over the kernel's time, median over "
        "problems solved.",
        anchor="floors",
    ),
    Number(
        key="idle",
        summed=Summing.MEDIAN,
        label="idle",
        below="credit",
        is_timed=True,
        snapshot="idle",
        means="Share of the profiled time in which nothing ran, median over problems solved.",
        anchor="roofline-credit",
    ),
    Number(
        key="k",
        of="score.k",
        label="k",
        unit="samples",
        group="how",
        cell="count",
        snapshot="k",
        kind="int",
        means="Samples a problem.",
    ),
    Number(key="cost", of="cost_usd", label="Cost", unit="US$", group="how", cell="usd"),
    Number(
        key="output_tokens",
        summed=Summing.TOTAL,
        exported=False,
        snapshot="output_tokens",
        means="Output tokens of all attempts judged there, unless one does not say.",
    ),
    Number(
        key="usd",
        summed=Summing.TOTAL,
        exported=False,
        snapshot="usd",
        means="US$ of all attempts judged there, unless one does not say.",
    ),
    Number(
        key="solved_tokens",
        of="tokens_per_solved",
        label="Output",
        unit="tokens a solved problem",
        group="how",
        cell="count",
        falls=False,
        means="Output tokens of all attempts, failed ones too, over the problems solved, as "
        "harnesses say. A dash where one attempt does not say.",
        anchor="costs",
    ),
    Number(
        key="solved_usd",
        of="usd_per_solved",
        label="Cost",
        unit="US$ a solved problem",
        group="how",
        cell="usd",
        falls=False,
        means="US$ of all attempts, failed ones too, over the problems solved, as harnesses say. "
        "A dash where one attempt does not say.",
        anchor="costs",
    ),
)
BY_KEY = {number.key: number for number in NUMBERS}
GROUPS = ("fast", "right", "how")
COLUMNS = sorted((one for one in NUMBERS if one.unit), key=lambda one: GROUPS.index(one.group))
SUMMED = tuple(number for number in NUMBERS if number.summed)
# What the first page shows unless its address asks for more: shares first.
PLAIN = sorted((one for one in COLUMNS if one.plain), key=lambda one: not one.is_share)
# Columns of Run, and entries of each attempt.
MEASURED = tuple(
    number.key for number in SUMMED if number.summed is Summing.MEDIAN and not number.of_kernels
)
TAKEN = tuple(number.key for number in SUMMED if number.summed is Summing.TOTAL)
