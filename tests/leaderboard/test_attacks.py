"""What was tried: every attack in a sentence, what it gets, since when; words and versions."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from leaderboard.models.choices import CURRENT_JUDGE
from leaderboard.site_pages import attacks
from leaderboard.site_pages.glossary import JUDGE_VERSIONS

pytestmark = pytest.mark.django_db
QUIET = {"speedup_below": None, "is_timed": False, "threatens_host": False}


def test_every_attack_is_told_with_what_it_gets(client: Client) -> None:
    told = client.get("/attacks.json").json()["attacks"]
    page = client.get("/attacks").content.decode()
    assert page.count('<tr id="') == len(told) > 100
    assert "kernels that try to fool the judge" in page
    assert len(client.get("/attacks.csv").content.decode().splitlines()) == len(told) + 1
    assert all(one["gets"] and one["since"] in JUDGE_VERSIONS for one in told)


def test_what_is_right_must_gain_nothing() -> None:
    assert attacks.gets({**QUIET, "verdicts": ["ok"]}) == "ok, and gains nothing"
    bounded = {**QUIET, "verdicts": ["late_output", "ok"], "speedup_below": 1.5}
    assert attacks.gets(bounded) == "late output or ok, and its speedup is surely below 1.5×"
    assert attacks.gets({**QUIET, "verdicts": ["oom", "timeout"]}) == "oom or timeout"


def test_one_that_is_like_another_follows_it_where_both_have_one_aim() -> None:
    rows = [
        {"name": name, "like": like, "aim": aim}
        for name, like, aim in (("a", None, "time"), ("b", "a", "time"), ("c", "a", "host"))
    ]
    found: dict[str, Any] = {str(one["aim"]): one["rows"] for one in attacks.groups(rows)}
    assert [one["nested"] for one in found["time"]] == [False, True]
    assert [one["nested"] for one in found["host"]] == [False]


def test_every_version_of_the_judge_is_explained(client: Client) -> None:
    assert list(JUDGE_VERSIONS) == [str(n) for n in range(1, int(CURRENT_JUDGE) + 1)]
    page = client.get("/methodology").content.decode()
    assert f'<dt id="judge-{CURRENT_JUDGE}">' in page
    assert "<dt>hardened</dt>" in page


def test_the_api_has_a_page_of_its_calls(client: Client) -> None:
    page = client.get("/api/v1/").content.decode()
    assert "<code>/api/v1/submissions</code>" in page
    assert "<code>licence</code>" in page, "what a call takes"
    assert "<code>no_host</code>" in page, "what it answers"
    assert 'href="/api/v1/"' in client.get("/status").content.decode()
