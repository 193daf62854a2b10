"""The tables of a run's page as CSV."""

from __future__ import annotations

import csv

import pytest
from django.test import Client

from evaluator import Verdict
from leaderboard.models import Run
from tests.leaderboard import factory, gpu_report

pytestmark = [pytest.mark.django_db, pytest.mark.server]


@pytest.fixture
def run() -> Run:
    return gpu_report.make_gpu_run()


def table(client: Client, run: Run, name: str) -> list[dict[str, str]]:
    answer = client.get(f"/runs/{run.id}.csv?table={name}")
    assert answer.status_code == 200
    return list(csv.DictReader(answer.text.splitlines()))


def test_every_call_rank_and_gpu_has_a_row(run: Run, client: Client) -> None:
    report = run.report
    assert report is not None
    timing = report["timing"]
    bursts = table(client, run, "bursts")
    assert [float(row["kernel_us"]) for row in bursts] == timing["kernel_bursts_us"]
    assert [float(row["baseline_us"]) for row in bursts] == timing["baseline_bursts_us"]
    times = table(client, run, "times")
    both = ["answer_us", "call_us", "series_us"]
    assert [row["time"] for row in times] == [*both, "before_us", "after_us", "bound_us"]
    assert [float(row["kernel_us"]) for row in times[:3]] == list(timing["kernel"].values())
    assert [float(row["baseline_us"]) for row in times[:3]] == list(timing["baseline"].values())
    assert float(times[-1]["kernel_us"]) == report["floors"]["wire_us"]
    assert [row["scored"] for row in times] == ["1", "0", "0", "0", "0", "0"]
    ranks = table(client, run, "ranks")
    assert {row["call_us"] for row in ranks} == {""}
    assert [float(row["overlap_us"]) for row in ranks] == [
        timeline["overlap_us"] for timeline in report["timelines"]
    ]
    gpus = table(client, run, "gpus")
    assert [float(row["power_w"]) for row in gpus] == [gpu["power_w"] for gpu in report["gpus"]]
    assert [row["throttle_reasons"] for row in gpus] == ["", "", "", "sw_power_cap"]


def test_what_ranks_told_judges_up_to_nine_has_a_row(client: Client) -> None:
    old = gpu_report.make_gpu_run(judge_version="9")
    assert old.report is not None
    timing = old.report["timing"]
    ranks = table(client, old, "ranks")
    assert [float(row["call_us"]) for row in ranks] == timing["rank_us"]
    assert [int(row["last_batches"]) for row in ranks] == timing["rank_last"]
    assert [float(row["kernel_us"]) for row in table(client, old, "bursts")]
    times = {row["time"]: float(row["kernel_us"]) for row in table(client, old, "times")}
    assert times.keys() == {"batch_us", "single_us", "events_us", "bound_us"}
    assert times["single_us"] == timing["kernel_single_us"]


def test_limits_and_mechanisms_are_those_of_the_report(run: Run, client: Client) -> None:
    limits = {row["limit"]: float(row["us"]) for row in table(client, run, "limits")}
    assert limits == {"wire": 33.6, "hbm": 21.3, "flops": 12.25, "latency": 1.8}
    tags = [(row["tag"], row["evidence"]) for row in table(client, run, "mechanisms")]
    assert tags == [("nccl", "trace"), ("nccl", "source"), ("signal_pads", "sass")]


def test_a_run_that_was_not_timed_has_tables_without_rows(client: Client) -> None:
    run = factory.make_run(factory.make_kernel(factory.make_submission(), factory.make_problem()))
    factory.finish(run, factory.make_report(run, Verdict.OUTPUT_MISMATCH))
    for name in ("bursts", "times", "limits", "ranks", "gpus", "mechanisms"):
        assert table(client, run, name) == []


def test_pages_of_a_run_and_its_kernel_link_them_and_refuse_others(
    run: Run, client: Client
) -> None:
    for address in (f"/runs/{run.id}", f"/kernels/{run.kernel.source_id}"):
        page = client.get(address).text
        for query in ("", *(f"?table={n}" for n in ("bursts", "times", "limits", "ranks", "gpus"))):
            assert f'href="/runs/{run.id}.csv{query}"' in page
    assert client.get(f"/runs/{run.id}.csv?table=prices").status_code == 400
