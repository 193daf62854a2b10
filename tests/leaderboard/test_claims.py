"""What others published, as claims: when, and no more exactly than they say."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from leaderboard.models import LanguageModel, Publication, Submission
from leaderboard.submissions import published_results
from tests.leaderboard import factory

pytestmark = [pytest.mark.django_db, pytest.mark.server]


def by_model(client: Client, address: str) -> dict[str, dict[str, Any]]:
    return {row["model"]: row for row in client.get(address).json()["rows"]}


@pytest.mark.parametrize("date", ["2026", "2026-06", "2026-06-17", None])
def test_a_claim_is_dated_as_exactly_as_its_source(date: str | None, client: Client) -> None:
    factory.make_judged(factory.make_submission("Own"), factory.make_problem())
    factory.make_publication("Claimed")
    Publication.objects.update(date=date)
    cell = f"<time>{date}</time>" if date else "–"
    slug = LanguageModel.objects.get(name="Claimed").slug
    for page, data in (("/?columns=all", "/leaderboard"), (f"/models/{slug}", f"/models/{slug}")):
        assert f'<td class="quiet tight">{cell}</td>' in client.get(page).content.decode()
        assert by_model(client, f"{data}.json")["Claimed"]["date"] == date
        rows = csv.DictReader(io.StringIO(client.get(f"{data}.csv").content.decode()))
        assert {row["model"]: row["date"] for row in rows}["Claimed"] == (date or "")


@pytest.mark.parametrize("microsecond", [0, 120, 680430, 123456])
def test_a_submission_is_dated_to_the_moment_and_shown_to_the_day(
    microsecond: int, client: Client
) -> None:
    came = datetime(2026, 6, 17, 23, 59, 58, microsecond, UTC)
    own = factory.make_submission("Own")
    Submission.objects.filter(pk=own.pk).update(created_at=came)
    factory.make_judged(own, factory.make_problem())
    assert by_model(client, "/leaderboard.json")["Own"]["date"] == came.isoformat()
    assert f"<time>{came:%Y-%m-%d}</time>" in client.get("/?columns=all").text


@pytest.mark.parametrize("date", ["June 2026", "2026-6", "2026-06-", ""])
def test_a_publication_needs_a_date_that_sorts(tmp_path: Path, date: str) -> None:
    path = tmp_path / "claims.json"
    path.write_text(json.dumps(json.loads(published_results.PKB.read_text()) | {"date": date}))
    with pytest.raises(ValueError, match="ISO 8601"):
        published_results.load(path)
    assert not Publication.objects.exists()
