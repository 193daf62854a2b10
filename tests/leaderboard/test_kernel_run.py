"""A kernel's page under the run that a link to it was made for."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.test import Client

from leaderboard.models import Problem, Run
from tests.leaderboard import factory

pytestmark = pytest.mark.django_db


@pytest.fixture
def older(problem: Problem) -> Run:
    """Fast at `standard`; a newer run of the same kernel is slow at `large`."""
    kernel = factory.make_kernel(factory.make_submission(), problem)
    runs = [factory.make_run(kernel, size=size) for size in ("standard", "large")]
    for run, speedup in zip(runs, (1.42, 0.86), strict=True):
        factory.finish(run, factory.make_report(run, speedup=speedup))
    return runs[0]


def text_of(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return unescape(response.content.decode())


def headed(html: str) -> str:
    """What stands above the source."""
    return html.partition('id="source"')[0]


def test_a_link_to_a_kernel_leads_to_the_run_that_it_was_made_for(
    older: Run, problem: Problem, client: Client
) -> None:
    digest = older.kernel.source_id
    for page in (
        f"/problems/1-{problem.slug}?size=standard",
        f"/submissions/{older.kernel.submission_id}?size=standard",
        f"/runs/{older.pk}",
    ):
        found = re.findall(rf'href="(/kernels/{digest}[^"#]*)', text_of(client, page))
        assert set(found) == {f"/kernels/{digest}?run={older.pk}"}, page


def test_a_kernel_is_headed_by_the_run_asked_for(older: Run, client: Client) -> None:
    address = f"/kernels/{older.kernel.source_id}"
    assert "0.860×" in headed(text_of(client, address))
    html = text_of(client, f"{address}?run={older.pk}")
    assert "1.42×" in headed(html)
    assert "0.860×" not in headed(html)
    assert f'href="?diff=reference&run={older.pk}#diff"' in html
    assert f'href="/runs/{older.pk}/bundle.zip"' in html
    assert f'href="{address}?run={older.pk}#source"' in text_of(
        client, f"{address}?run={older.pk}&diff=reference"
    )


def test_a_run_of_nothing_here_changes_nothing(older: Run, client: Client) -> None:
    address = f"/kernels/{older.kernel.source_id}"
    waiting = factory.make_run(older.kernel)
    for wanted in (waiting.pk, "0", "<b>"):
        html = text_of(client, f"{address}?run={wanted}")
        assert "0.860×" in headed(html)
        assert f'href="{address}/bundle.zip"' in html
