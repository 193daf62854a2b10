"""The page of a run shows the times that its judge took: three of a call since judge 10, batches
before."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from evaluator.messages.codec import decode
from evaluator.messages.report import ThreeTimes, Timing
from leaderboard.models import Run
from leaderboard.run_pages.run import run_table
from leaderboard.run_pages.speed import speed
from tests.leaderboard import factory, gpu_report
from tests.leaderboard.timings import make_timing

pytestmark = pytest.mark.django_db
OLD = "9"


def text_of(client: Client, run: Run) -> str:
    page = client.get(f"/runs/{run.id}").text
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page)))


def judged(**timing: Any) -> Run:
    kernel = factory.make_kernel(factory.make_submission(), factory.make_problem())
    run = factory.make_run(kernel)
    told = replace(make_timing(1.25), **timing)
    return factory.finish(run, factory.make_report(run, speedup=1.25, timing=told))


def test_one_table_has_every_time_of_a_call_and_says_which_is_scored(client: Client) -> None:
    run = judged()
    text = text_of(client, run)
    noise = "Little noise: surely 1.20× to 1.31× (95 %). 8 of 10 samples: 79.0 µs to 82.9 µs."
    equal = "Times closer than 0.250 µs are equal."
    what = "GPU time: from readable inputs until the last rank has committed its outputs."
    empty = "6.50 µs of an empty call are subtracted."
    assert f"Time to answer score 80.00 100.00 1.25× {noise} {equal} {what} {empty}" in text
    assert "Call time 120.00 140.00 1.17× – Python, launches and GPU work" in text
    assert "Back to back 64.00 90.00 1.41×" in text
    assert "Reference alone, before – 99.00 –" in text
    assert "Reference alone, after – 101.00 – 2.0 % off the time before." in text
    assert "Timed 8 calls of the kernel after 16 to warm up, 8 of the reference" in text
    assert "Queued ahead 87.5 % of the kernel's calls" in text
    for gone in ("batch", "One call at a time", "PKB's own harness"):
        assert gone not in text
    assert run.report is not None
    rows = list(run_table("times", run.report).rows)
    assert [row[0] for row in rows if row[-1]] == ["answer_us"]
    assert len(rows) == text.count(" Reference alone, ") + 3


def test_noise_is_told_in_words(client: Client) -> None:
    samples = (60.0, 70.0, 80.0, 80.0, 80.0, 80.0, 90.0, 100.0)
    rough = judged(kernel_bursts_us=samples, speedup_low=0.9, speedup_high=1.6)
    factory.finish(
        disturbed := factory.make_run(rough.kernel),
        factory.make_report(disturbed, speedup=1.25, flags=("noisy_host",)),
    )
    text = text_of(client, rough)
    assert "Much noise: surely 0.900× to 1.60× (95 %). Not distinguishable from the" in text
    assert "8 of 10 samples: 67.0 µs to 93.0 µs." in text
    assert "95 % interval 0.900× to 1.60×, much noise" in text
    assert "The host was disturbed" not in text
    assert "The host was disturbed: the reference's own times vary" in text_of(client, disturbed)


def test_what_was_not_measured_is_not_shown(client: Client) -> None:
    """On processors nothing is queued; the reference may be of an earlier run."""
    sides = {
        "kernel": ThreeTimes(answer_us=80.0),
        "baseline": ThreeTimes(answer_us=100.0),
    }
    text = text_of(client, judged(**sides, ahead=None, after_us=None))
    assert "Time to answer score 80.00 100.00" in text
    assert "Python included" in text
    for gone in ("GPU time", "Call time", "Back to back", "Reference alone, after"):
        assert gone not in text
    assert "timed by an earlier run on this host" in text
    assert "nothing: ranks are frozen until the inputs are there" in text


def test_samples_of_which_more_was_taken_off_than_they_took_are_drawn(client: Client) -> None:
    samples = (-0.5, 0.0, 80.0, 80.0, 80.0, 80.0, 80.0, 81.0)
    run = judged(kernel_bursts_us=samples, baseline_bursts_us=(100.0,) * 9)
    spec = client.get(f"/figures/burst-histogram.json?run={run.id}").json()
    kernel = next(one for one in spec["data"] if one["name"] == "kernel")
    *_, before, _ = kernel["y"]
    assert sum(kernel["y"]) - before == 8
    rows = client.get(f"/figures/bursts.csv?run={run.id}").text.splitlines()
    assert rows[0].startswith("Call,")
    assert len(rows) == 10  # every call of the reference, too


def test_batches_of_older_judges_are_shown_as_they_were(client: Client) -> None:
    run = gpu_report.make_gpu_run(judge_version=OLD)
    text = text_of(client, run)
    assert re.search(r"By PKB's own harness [\d.]+ [\d.]+ 1.46× – The mean of the slowest", text)
    assert "rank 3 is the slowest, 3.0 % behind the fastest" in text
    assert "Timed 8 batches of 16 calls, after 500 to warm up" in text
    assert re.search(r"In a batch score [\d.]+ [\d.]+ [\d.]+× ", text)
    assert "A batch of 16 calls, the mean of a call. 20.0 µs of an empty batch" in text
    assert "One call at a time 84.51 110.00 1.30×" in text
    assert "How long timed batches took" in text
    assert "Time to answer" not in text
    rows = client.get(f"/figures/bursts.csv?run={run.id}").text.splitlines()
    assert rows[0].startswith("Batch,")
    figure = client.get(f"/figures/burst-histogram?run={run.id}").text
    assert "How many batches took so long a call" in figure
    last = client.get(f"/figures/last-rank.csv?run={run.id}").text.splitlines()
    assert len(last) == 5


def test_reports_that_were_stored_before_judge_ten_lack_its_fields() -> None:
    report = gpu_report.make_gpu_run(judge_version=OLD).report
    assert report is not None
    new = ("resolution_us", "kernel", "baseline", "before_us", "after_us", "ahead")
    timing = {name: value for name, value in report["timing"].items() if name not in new}
    shown = speed({**report, "timing": timing})
    assert shown is not None
    assert (shown["is_of_calls"], shown["samples"]) == (False, 8)
    rows = list(run_table("times", {**report, "timing": timing}).rows)
    assert [row[0] for row in rows][:2] == ["batch_us", "single_us"]
    decoded = decode(Timing, timing, "timing")
    assert (decoded.kernel, decoded.kernel_single_us) == (None, timing["kernel_single_us"])
