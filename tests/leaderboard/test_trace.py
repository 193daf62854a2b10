"""The timeline of a run in the form of Chrome's tracing."""

from __future__ import annotations

import pytest
from django.test import Client

from leaderboard.models import Submission, Visibility
from tests.leaderboard import gpu_report

pytestmark = pytest.mark.django_db


def test_a_timeline_can_be_taken_away_as_a_trace(client: Client) -> None:
    run = gpu_report.make_gpu_run()
    report = run.report or {}
    told = client.get(f"/runs/{run.id}/trace.json")
    assert told["Content-Disposition"].endswith('.trace.json"')
    events = told.json()["traceEvents"]
    bars = [event for event in events if event["ph"] == "X"]
    assert len(bars) == sum(len(line["events"]) for line in report["timelines"])
    first = report["timelines"][0]["events"][0]
    assert (bars[0]["name"], bars[0]["ts"], bars[0]["dur"], bars[0]["pid"]) == (
        *(first["name"], first["start_us"], first["duration_us"]),
        0,
    )
    page = client.get(f"/runs/{run.id}").content.decode()
    assert f'href="/runs/{run.id}/trace.json"' in page
    assert "of the profiled timeline" in page
    (row,) = client.get("/leaderboard.json").json()["rows"]
    spans, idle = (sum(line[n] for line in report["timelines"]) for n in ("span_us", "idle_us"))
    assert row["idle"] == run.idle == pytest.approx(idle / spans)
    assert row["credit"] == pytest.approx(run.utilisation / row["scored"])
    assert " idle</small></td>" in client.get("/?columns=all").text
    Submission.objects.update(visibility=Visibility.PRIVATE)
    assert client.get(f"/runs/{run.id}/trace.json").status_code == 404
