"""The methodology page says what the code does."""

from __future__ import annotations

import csv
import re

import pytest
from django.test import Client

from leaderboard.models.choices import CURRENT_JUDGE, ISOLATIONS, TRIALS, VERDICTS
from leaderboard.read_model.judge_constants import judge_constants
from leaderboard.site_pages import methodology

pytestmark = pytest.mark.django_db


@pytest.fixture
def page(client: Client) -> str:
    return client.get("/methodology").content.decode()


def test_every_section_has_an_anchor_and_every_link_leads_to_one(page: str) -> None:
    anchors = set(re.findall(r' id="([\w-]+)"', page))
    assert {anchor for anchor, _ in methodology.SECTIONS} <= anchors
    assert set(re.findall(r'href="#([\w-]+)"', page)) - {"content"} <= anchors
    headings = re.findall(r'<h2 id="([\w-]+)"', page)
    assert headings == [anchor for anchor, _ in methodology.SECTIONS]


def test_links_from_the_board_lead_to_a_section(page: str, client: Client) -> None:
    anchors = set(re.findall(r' id="([\w-]+)"', page))
    board = client.get("/").content.decode()
    linked = set(re.findall(r'href="/methodology#([\w-]+)"', board))
    assert linked
    assert linked <= anchors


def test_it_names_every_verdict_flag_mechanism_and_level(page: str) -> None:
    known = judge_constants()
    names = [*known["mechanisms"], *known["patterns"], *methodology.FLAGS]
    names += [name for name, _ in (*VERDICTS, *ISOLATIONS)]
    assert not [name for name in names if f"<code>{name}</code>" not in page]
    assert f"judge version {CURRENT_JUDGE}" in page


def test_everything_of_a_closed_set_has_words() -> None:
    known = judge_constants()
    assert set(methodology.MECHANISMS) == set(known["mechanisms"])
    assert set(methodology.PATTERNS) == set(known["patterns"])
    assert set(methodology.EVIDENCE) == set(known["evidence"])
    assert set(methodology.ISOLATION_MEANINGS) == {name for name, _ in ISOLATIONS}
    assert known["trials"] == TRIALS


def test_numbers_come_from_the_judge(page: str, client: Client) -> None:
    known = judge_constants()
    assert f"{known['timing']['timed_calls']} calls a side" in page
    assert f"after at most {known['timing']['ahead_ms']}\xa0ms" in page.replace("&nbsp;", "\xa0")
    assert f"from {known['timing']['resamples']} bootstrap draws" in page
    assert f"agree within {known['timing']['agreement']:.1%}".replace("%", " %") in page
    assert f"for {known['timing']['serves_s'] // 60} minutes" in page
    assert client.get("/methodology.json").json()["judging"] == known


def test_both_clocks_are_explained(page: str) -> None:
    """Old results show flags and times of the older one, and links lead to what they mean."""
    for name in ("baseline_drifted", "times_disagree", "noisy_host", *methodology.OLDER_FLAGS):
        assert f'id="flag-{name}"' in page
    assert "<b>Judges up to 9</b> timed" in page
    for anchor in ("gate", "bursts", "locked-bursts", "empty-bursts", "older-clock"):
        assert page.count(f' id="{anchor}"') == 1


def test_every_table_is_csv_too(page: str, client: Client) -> None:
    for name in methodology.TABLES:
        assert f'href="/methodology.csv?table={name}"' in page
        rows = list(csv.DictReader(client.get(f"/methodology.csv?table={name}").text.splitlines()))
        assert rows
    verdicts = list(csv.DictReader(client.get("/methodology.csv").text.splitlines()))
    assert [row["name"] for row in verdicts] == [name for name, _ in VERDICTS]
    text = client.get("/methodology.csv?table=limits").text
    limits = {row["device"]: row for row in csv.DictReader(text.splitlines())}
    known = judge_constants()
    assert float(limits["cpu"]["build_s"]) == known["limits"]["cpu"]["build_s"]
    assert float(limits["cuda"]["timed_s"]) == known["limits"]["cuda"]["timed_s"]
    assert client.get("/methodology.csv?table=prices").status_code == 400
