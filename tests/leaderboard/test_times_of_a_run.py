"""The page of a run shows the times that its judge took: three of a call since judge 10, batches
before."""

from __future__ import annotations

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
    html = client.get(f"/runs/{run.id}").content.decode().replace("&#x27;", "'")
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def judged(**timing: Any) -> Run:
    kernel = factory.make_kernel(factory.make_submission(), factory.make_problem())
    run = factory.make_run(kernel)
    told = replace(make_timing(1.25), **timing)
    return factory.finish(run, factory.make_report(run, speedup=1.25, timing=told))


def test_a_call_has_three_times_next_to_the_references(client: Client) -> None:
    text = text_of(client, judged())
    assert "Time to answer score 80.00 100.00 1.25×" in text
    assert "Call time 120.00 140.00 1.17×" in text
    assert "Back to back 64.00 90.00 1.41×" in text
    assert "95 % interval of the speedup 1.20× to 1.31×" in text
    assert "Resolution 0.250 µs: closer times are not distinguishable" in text
    assert "Timed calls 8 of the kernel after 16 to warm up, 8 of the reference" in text
    assert "Reference alone 99.0 µs before the kernel, 101 µs after it" in text
    assert "Taken off each call 6.50 µs, what an empty call takes" in text
    assert "Queued ahead 87.5 % of the kernel's calls" in text
    for gone in ("batch", "One call at a time", "harness would have reported"):
        assert gone not in text


def test_what_was_not_measured_is_not_shown(client: Client) -> None:
    """On processors nothing is queued; the reference may be of an earlier run."""
    sides = {
        "kernel": ThreeTimes(answer_us=80.0),
        "baseline": ThreeTimes(answer_us=100.0),
    }
    text = text_of(client, judged(**sides, ahead=None, after_us=None))
    assert "Time to answer score 80.00 100.00" in text
    assert "Call time" not in text
    assert "Back to back" not in text
    assert "99.0 µs before the kernel, by an earlier run on this host" in text
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
    assert "PKB's own harness would have reported 1.46×" in text
    assert "rank 3 is the slowest, 3.0 % behind the fastest" in text
    assert "Timed 8 batches of 16 calls, after 500 to warm up" in text
    assert "One call at a time 84.5 µs; reference 110 µs" in text
    assert "Taken off each batch 20.0 µs, what an empty batch takes" in text
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
    assert (shown["times"], shown["samples"]) == ([], 8)
    assert list(run_table("times", {**report, "timing": timing}).rows) == []
    decoded = decode(Timing, timing, "timing")
    assert (decoded.kernel, decoded.kernel_single_us) == (None, timing["kernel_single_us"])
