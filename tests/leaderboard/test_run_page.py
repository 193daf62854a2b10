"""The page of a run: followed while it goes on, kept once it is finished."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evaluator.messages.codec import encode
from evaluator.messages.report import Verdict
from leaderboard.kit.durations import spelt
from leaderboard.models import Run
from leaderboard.run_pages.correctness import failed_checks
from leaderboard.run_pages.run import CHECK_COLUMNS, check_rows
from tests.leaderboard import factory, gpu_report

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    return gpu_report.make_gpu_run()


def text_of(client: Client, address: str) -> str:
    return client.get(address).content.decode()


def test_the_reason_has_units_like_the_rest_of_the_page(run: Run, client: Client) -> None:
    other = factory.make_run(run.kernel)
    message = "every output was right; 9.1 us a call"
    factory.finish(other, factory.make_report(other, message=message))
    assert "Every output was right; 9.1 µs a call" in text_of(client, f"/runs/{other.id}")


def test_the_page_of_a_finished_run_is_kept_and_of_a_waiting_one_not(
    run: Run, client: Client
) -> None:
    first = client.get(f"/runs/{run.id}")
    with CaptureQueriesContext(connection) as queries:
        again = client.get(f"/runs/{run.id}", headers={"If-None-Match": first["ETag"]})
    assert again.status_code == 304
    assert len(queries) <= 2
    waiting = factory.make_run(run.kernel)
    assert client.get(f"/runs/{waiting.id}")["Cache-Control"] == "no-cache"
    factory.start(waiting)
    assert "running" in text_of(client, f"/runs/{waiting.id}")
    factory.finish(waiting, factory.make_report(waiting, speedup=3.0))
    assert "3.00×" in text_of(client, f"/runs/{waiting.id}")


def test_the_table_of_a_run_holds_every_check(run: Run, client: Client) -> None:
    found = client.get(f"/runs/{run.id}.csv")
    rows = list(csv.DictReader(io.StringIO(found.content.decode())))
    assert run.report is not None
    checks = [(t["trial"], c) for t in run.report["trials"] for c in t["checks"]]
    assert len(rows) == len(checks) > 4
    for row, (trial, check) in zip(rows, checks, strict=True):
        assert (int(row["trial"]), int(row["rank"])) == (trial, check["rank"])
        assert (row["output"], row["verdict"]) == (check["output"], check["verdict"])
        assert float(row["max_error"]) == check["max_error"]
    waiting = factory.make_run(run.kernel)
    assert client.get(f"/runs/{waiting.id}.csv").status_code == 404
    assert f"/runs/{waiting.id}.csv" not in text_of(client, f"/runs/{waiting.id}")
    assert f"/runs/{run.id}.csv" in text_of(client, f"/runs/{run.id}")


def test_an_output_that_is_too_rough_as_a_whole_is_told_from_wrong_elements(
    run: Run, client: Client
) -> None:
    trial = factory.make_trial(0, True)
    measured = [replace(check, rms_error=0.01, rms_limit=0.11) for check in trial.checks]
    rough = replace(measured[1], rms_error=0.213, verdict=Verdict.OUTPUT_MISMATCH)
    other = factory.make_run(run.kernel)
    verdict = Verdict.OUTPUT_MISMATCH
    trials = (replace(trial, checks=(measured[0], rough)),)
    factory.finish(other, factory.make_report(other, verdict, trials=trials))
    (failed,) = failed_checks([encode(trials[0])])
    right = '<td class="num margin pass">0.0500</td>'
    assert failed["cells"] == (
        '<td class="num">0<span class="of">/2,048</span></td>'
        f'{right}<td class="num margin fail">0.213 <span class="mark">fail</span></td>'
        '<td class="num">0.110</td>'
    )
    assert right in text_of(client, f"/runs/{other.id}")
    rows = list(csv.DictReader(io.StringIO(text_of(client, f"/runs/{other.id}.csv"))))
    assert [(row["rms_error"], row["rms_limit"]) for row in rows] == [
        ("0.01", "0.11"),
        ("0.213", "0.11"),
    ]


def test_checks_of_older_reports_have_no_root_mean_square() -> None:
    older = encode(factory.make_trial(0, False))
    for check in older["checks"]:
        del check["rms_error"], check["rms_limit"]
    failed = failed_checks([older])[-1]["cells"]
    assert str(failed).endswith('<td class="num none">–</td>')
    rows = [dict(zip(CHECK_COLUMNS, row, strict=True)) for row in check_rows({"trials": [older]})]
    assert {(row["rms_error"], row["rms_limit"]) for row in rows} == {(None, None)}


def test_a_finished_run_leads_to_its_kernel_and_bundle(run: Run, client: Client) -> None:
    html = text_of(client, f"/runs/{run.id}")
    assert f'href="/kernels/{run.kernel.source_id}?run={run.id}#source"' in html
    assert f'href="/runs/{run.id}/bundle.zip"' in html
    waiting = text_of(client, f"/runs/{factory.make_run(run.kernel).id}")
    assert 'data-field="queue_position">1<' in waiting
    assert 'data-field="waiting">0 s<' in waiting


def test_a_time_of_waiting_is_spelt_for_people() -> None:
    told: dict[float, str] = {
        **{0: "0 s", 0.9: "0 s", 59: "59 s", 60: "1 min", 200.5: "3 min 20 s"},
        **{3600: "1 h", 3659: "1 h", 3700: "1 h 1 min", 86_399: "23 h 59 min"},
        **{86_400: "1 d", 183_700: "2 d 3 h", 1e6: "11 d 13 h"},
    }
    assert {seconds: spelt(seconds) for seconds in told} == told


def test_a_flag_leads_to_what_it_means(run: Run, client: Client) -> None:
    flags = ("open_bursts", "static:cuda-graph")
    flagged = factory.make_run(run.kernel)
    factory.finish(flagged, factory.make_report(flagged, flags=flags))
    page, methodology = (text_of(client, at) for at in (f"/runs/{flagged.id}", "/methodology"))
    for flag in flags:
        assert f'href="/methodology#flag-{flag}"' in page.replace("%3A", ":")
        assert f'id="flag-{flag}"' in methodology
