"""What kernels are judged on has pages: measured, or not yet."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import plotly.graph_objects as go
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from evaluator.messages.report import Verdict
from leaderboard.figures.charts import hardware as charts
from leaderboard.models import DataVersion, Hardware, Problem, WorkerHost
from leaderboard.models.choices import CURRENT_JUDGE
from leaderboard.read_model import calibration
from leaderboard.read_model.calibration import CalibrationError, lacks, reached
from problems.topology import pairs
from tests.leaderboard import factory

pytestmark = pytest.mark.django_db

RELEASE = calibration.FOLDER / "calibration-h200x2.json"
HOSTILE = "<script>alert(1)</script>\u202e"


@pytest.fixture
def h200x8() -> Hardware:
    WorkerHost.objects.create(
        host=HOSTILE,
        queue="h200x8",
        hardware="8 x NVIDIA H200",
        isolation="bwrap",
        judge_version="2",
        versions={"torch": "2.11.0", HOSTILE: HOSTILE},
        last_seen_at=timezone.now(),
    )
    made: Hardware = Hardware.objects.create(
        slug="h200x8", title="8 x NVIDIA H200", device="cuda", max_world_size=8
    )
    return made


def test_what_was_measured_for_a_release_is_shown(client: Client) -> None:
    text = client.get("/hardware/h200x2").content.decode()
    for told in ("Matrix products, TF32", "386", "multicast is off", "580.159.04", "3,201"):
        assert told in text, told
    assert "No host of this class" in text
    assert '<th scope="row" class="first tight">0: <bdi>NVIDIA H200' in text
    assert "h200x2" in client.get("/hardware").content.decode()


def test_hardware_without_gpus_has_a_page_too(problem: Problem, client: Client) -> None:
    factory.make_judged(factory.make_submission(), problem)
    factory.make_judged(factory.make_submission(visibility="private"), problem)
    text = client.get("/hardware/cpu").content.decode()
    assert "Ranks are processes of one host" in text
    assert "Datasheet" not in text
    found = client.get("/hardware/cpu.json").json()
    assert (found["submissions"], found["attempts"]) == (1, 1)
    row = client.get("/hardware.json").json()["hardware"][0]
    assert (row["slug"], row["submissions"]) == ("cpu", 1)


def test_a_host_tells_versions_and_its_page_says_what_to_measure(
    h200x8: Hardware, client: Client
) -> None:
    text = client.get("/hardware/h200x8").content.decode()
    assert "Not measured yet" in text
    assert "4,800 GB/s" in text  # the datasheet's
    assert "2.11.0" in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;[U+202E]" in text
    assert HOSTILE not in text
    assert '<a href="/hardware/h200x2">h200x2</a> has the same GPU' in text


def test_versions_are_those_of_reports_where_no_host_lives(
    h200x8: Hardware, client: Client
) -> None:
    WorkerHost.objects.all().delete()
    h200x8.facts = {"environment": {"versions": {"torch": "2.99"}}}
    h200x8.save()
    assert "2.99" in client.get("/hardware/h200x8").content.decode()


def test_a_measurement_is_kept_and_shown(h200x8: Hardware, client: Client) -> None:
    before = DataVersion.objects.current()
    call_command("load_calibration", "h200x8", RELEASE)
    assert DataVersion.objects.current() == before + 1
    assert "Matrix products, TF32" in client.get("/hardware/h200x8").content.decode()
    rows = client.get("/hardware/h200x8.csv").content.decode().splitlines()
    assert rows[0] == ",".join(calibration.FIELDS)
    assert len(rows) == 1 + len(json.loads(RELEASE.read_text())["measurements"])


def test_what_cannot_be_kept_says_why(h200x8: Hardware, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"known: .*h200x8"):
        call_command("load_calibration", "h200x9", RELEASE)
    (tmp_path / "other.json").write_text('{"measurements": [{}]}')
    with pytest.raises(CommandError, match="is not a calibration"):
        call_command("load_calibration", "h200x8", tmp_path / "other.json")
    with pytest.raises(CalibrationError, match="is not a calibration"):
        calibration.read(tmp_path / "missing.json")


@pytest.mark.parametrize("address", ["/hardware", "/hardware/h200x2", "/hardware/h200x8"])
def test_a_page_needs_few_queries(address: str, h200x8: Hardware, client: Client) -> None:
    with CaptureQueriesContext(connection) as queries:
        assert client.get(address).status_code == 200
    assert len(queries) <= 4


def test_unknown_hardware_is_not_found(client: Client) -> None:
    assert client.get("/hardware/tpu").status_code == 404
    for name in ("tpu", ""):
        assert client.get(f"/figures/hardware-limits.json?hardware={name}").status_code == 404


def test_quantities_are_brought_together() -> None:
    data = calibration.of_release()["h200x2"]
    rows = {row.quantity: row for row in reached(data)}
    assert (rows["bfloat16"].places, rows["link"].places) == (2, 2)
    assert rows["bfloat16"].share == pytest.approx(0.81, abs=0.01)
    # Of a rate the most is best, of a time the least.
    assert rows["bfloat16"].best > rows["bfloat16"].median
    assert rows["launch"].best < rows["launch"].median
    assert rows["launch"].share is None
    assert rows["signal"].datasheet is None
    assert set(pairs(data)) == {(0, 1), (1, 0)}
    assert lacks({"settings": {}, "unmeasured": {"float8": "no unit"}}) == ["float8: no unit"]


def test_the_figure_is_valid_and_holds_what_has_a_datasheet(client: Client) -> None:
    spec = client.get("/figures/hardware-limits.json?hardware=h200x2").json()
    rows = reached(calibration.of_release()["h200x2"])
    count = sum(row.share is not None for row in rows)
    assert len(go.Figure(spec).data[0].x) == count > 10
    table = client.get("/figures/hardware-limits.csv?hardware=h200x2").content.decode()
    assert len(table.splitlines()) == count + 1
    text = json.dumps(charts.shares([charts.DatasheetShare(name="<b >x", median=0.5, best=0.6)]))
    assert "<b >" not in text
    assert "Signal" not in table
    page = client.get("/hardware/h200x2").content.decode()
    assert page.index("Signal between two GPUs") > page.index('id="latencies"')


def test_what_versions_of_the_judge_found_is_not_added_up(problem: Problem, client: Client) -> None:
    one = factory.make_submission()
    factory.make_judged(one, problem)
    for judge in ("90", "100"):
        run = factory.make_run(factory.make_kernel(one, problem, attempt=int(judge)))
        factory.finish(run, replace(factory.make_report(run), judge_version=judge))
    told = [
        {"judge_version": judge, "submissions": 1, "problems": 1, "attempts": 1}
        for judge in ("100", "90", CURRENT_JUDGE)
    ]
    assert client.get("/hardware/cpu.json").json()["judged"] == told
    rows = list(csv.DictReader(client.get("/hardware/cpu.csv?table=judged").text.splitlines()))
    assert [row["judge_version"] for row in rows] == ["100", "90", CURRENT_JUDGE]
    page = client.get("/hardware/cpu").content.decode()
    assert "by judge 100</dd>" in page
    assert 'id="judged"' in page
    listed = client.get("/hardware").content.decode()
    assert "by the newest version of the judge that judged there" in listed
    rows = client.get("/hardware.json").json()["hardware"]
    row = next(row for row in rows if row["slug"] == "cpu")
    assert (row["judge_version"], row["attempts"]) == ("100", 1)


def test_every_table_of_hardware_is_csv_and_json_too(h200x8: Hardware, client: Client) -> None:
    found = client.get("/hardware/h200x2.json").json()
    assert found["datasheet"]["hbm_gb_s"] == 4800
    page = client.get("/hardware/h200x2").content.decode()
    assert 'href="/hardware/h200x2.csv?table=clocks"' in page
    text = client.get("/hardware/h200x2.csv?table=clocks").text
    clocks = list(csv.DictReader(text.splitlines()))
    assert [row["gpu"] for row in clocks] == ["0", "1"]
    assert 'href="/hardware/h200x8.csv?table=hosts"' in client.get("/hardware/h200x8").text
    (host,) = csv.DictReader(client.get("/hardware/h200x8.csv?table=hosts").text.splitlines())
    assert host["judge_version"] == "2"
    listed = {r["slug"]: r for r in csv.DictReader(client.get("/hardware.csv").text.splitlines())}
    assert round(float(listed["h200x2"]["link_gb_s"])) == 386
    assert listed["h200x8"]["link_gb_s"] == ""
    assert client.get("/hardware/h200x2.csv?table=prices").status_code == 400


def test_what_failed_elsewhere_did_not_run_here(problem: Problem, client: Client) -> None:
    one, beyond = factory.make_submission(), factory.make_problem(2, "gemm", "expert")
    factory.make_judged(one, beyond, Verdict.TIMEOUT, placement="shared")
    Hardware.objects.create(slug="other", title="Other", device="cpu", max_world_size=8)
    factory.make_judged(one, problem, hardware_id="other")
    (row,) = client.get("/leaderboard.json?hardware=other").json()["rows"]
    assert row["attempted"] == 2  # the failed check counts as failed where kernels are timed
    (counted,) = client.get("/hardware/other.json").json()["judged"]
    assert [counted[name] for name in ("submissions", "problems", "attempts")] == [1, 1, 1]
    (counted,) = client.get("/hardware/cpu.json").json()["judged"]
    assert [counted[name] for name in ("submissions", "problems", "attempts")] == [1, 1, 1]
