"""What submitters write is shown everywhere and harmful nowhere."""

from __future__ import annotations

import csv
import io
import re

import pytest
from django.test import Client

from evaluator.messages.report import RankLog, Verdict
from leaderboard.models import Run
from tests.leaderboard import factory

pytestmark = pytest.mark.django_db

MARK = "<script>alert('pwned')</script>"
BIDI = "\u202e\u2066"
LONG = "L" * 10_000
NAME = f"{MARK}{BIDI}\"'><b>"[:80]


@pytest.fixture
def hostile_run() -> Run:
    """A run in which every text that a submitter controls is hostile."""
    submission = factory.make_submission(NAME)
    submission.notes = MARK + BIDI + LONG
    submission.save()
    source = f'def solution(x):\n    """{MARK}{BIDI}"""\n    # {LONG}\n    return x\n'
    run = factory.make_run(factory.make_kernel(submission, factory.make_problem(), source=source))
    report = factory.make_report(
        run,
        Verdict.RUNTIME_ERROR,
        message=MARK + BIDI,
        cause=MARK,
        evidence=MARK + BIDI + LONG,
        flags=(f"static:{MARK}",),
        logs=(RankLog(rank=0, text=MARK + BIDI + LONG + "\x1b[2J\x00", dropped_bytes=9),),
    )
    return factory.finish(run, report)


def addresses(run: Run) -> list[str]:
    submission = run.kernel.submission
    return [
        "/",
        "/categories",
        "/matrix",
        "/compare",
        "/problems",
        "/problems/1-allreduce",
        "/status",
        f"/runs/{run.id}",
        f"/kernels/{run.kernel.source_id}",
        f"/submissions/{submission.pk}",
        f"/models/{submission.model.slug}",
    ]


def test_no_page_lets_markup_or_reordering_through(hostile_run: Run, client: Client) -> None:
    shown = 0
    for address in addresses(hostile_run):
        text = client.get(address).content.decode()
        assert "<script>alert" not in text, address
        assert not re.search("[\u202a-\u202e\u2066-\u2069\x00\x1b]", text), address
        shown += "&lt;script&gt;alert" in text
    assert shown >= 7  # escaped, not dropped


def test_no_page_has_inline_script_or_style(hostile_run: Run, client: Client) -> None:
    for address in addresses(hostile_run):
        text = client.get(address).content.decode()
        assert not re.search(r"<script(?![^>]* src=)", text), address
        assert not re.search(r"<style|<[^>]* style=|<[^>]* on[a-z]+=", text), address


def test_long_texts_do_not_break_a_page(hostile_run: Run, client: Client) -> None:
    page = client.get(f"/kernels/{hostile_run.kernel.source_id}").content.decode()
    assert page.count(LONG) == 3  # evidence, log, source


def test_twins_are_served_as_data_never_as_a_page(hostile_run: Run, client: Client) -> None:
    for address in addresses(hostile_run)[1:]:
        twin = client.get(f"{address}.json")
        assert twin["Content-Type"] == "application/json", address
        assert twin["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("start", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1"])
def test_a_spreadsheet_runs_nothing(start: str, db: None, client: Client) -> None:
    factory.make_judged(factory.make_submission(f"{start}x"), factory.make_problem())
    rows = list(csv.DictReader(io.StringIO(client.get("/leaderboard.csv").content.decode())))
    assert rows[0]["model"] == f"'{start}x"


def test_a_figure_carries_no_markup(hostile_run: Run, client: Client) -> None:
    text = client.get("/figures/failure-modes.json").content.decode()
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    page = client.get("/figures/failure-modes").content.decode()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
