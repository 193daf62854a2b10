"""A kernel's page under the run that a link to it was made for."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from html import unescape

import pytest
from django.test import Client

from leaderboard.models import Problem, Run, Visibility
from leaderboard.models.choices import CURRENT_JUDGE
from tests.leaderboard import factory

pytestmark = [pytest.mark.django_db, pytest.mark.server]


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
    assert "1.42×" in headed(text_of(client, address)), "that of the board's setting"
    newer = Run.objects.exclude(pk=older.pk).get()
    assert "0.860×" in headed(text_of(client, f"{address}?run={newer.pk}"))
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
        assert "1.42×" in headed(html)
        assert f'href="{address}/bundle.zip"' in html


def second_attempt(older: Run) -> list[Run]:
    """Judged at both sizes like the first, at `large` again later."""
    submission, problem = older.kernel.submission, older.kernel.problem
    kernel = factory.make_kernel(submission, problem, source="second = 1\n", attempt=2)
    runs = [factory.make_run(kernel, size=size) for size in ("standard", "large", "large")]
    for run, speedup in zip(runs, (2.84, 1.72, 1.71), strict=True):
        factory.finish(run, factory.make_report(run, speedup=speedup))
    return runs


def test_kernels_are_compared_in_the_setting_of_the_page_that_links(
    older: Run, client: Client
) -> None:
    at_standard, at_large, newest = second_attempt(older)
    first, second = older.kernel.source_id, at_standard.kernel.source_id
    for shown, beside, speedups in (
        (older, at_standard, [2.84, 1.42]),
        (Run.objects.get(kernel=older.kernel, size="large"), newest, [1.71, 0.86]),
    ):
        html = text_of(client, f"/kernels/{first}?run={shown.pk}")
        address = f"/compare?kernels={second},{first}&run={shown.pk}"
        assert f'href="{address}"' in html
        assert f'href="/kernels/{second}?run={beside.pk}"' in html
        found = client.get(address.replace("?", ".json?")).json()["kernels"]
        assert [row["run"] for row in found] == [str(beside.pk), str(shown.pk)]
        assert [row["speedup"] for row in found] == speedups
        text = text_of(client, address)
        assert f'href="/kernels/{second}?run={beside.pk}"' in text
        assert f'href="/kernels/{first}?run={shown.pk}"' in text
        in_setting = f"?hardware=cpu&ranks=2&size={shown.size}&"
        assert f'href="/submissions/{shown.kernel.submission_id}{in_setting}' in text
    older_at_large = f"/compare.json?kernels={first},{second}&run={at_large.pk}"
    assert client.get(older_at_large).json()["kernels"][1]["run"] == str(at_large.pk)


def test_a_difference_leads_to_the_other_side_in_the_same_setting(
    older: Run, client: Client
) -> None:
    at_standard = second_attempt(older)[0]
    first, second = older.kernel.source_id, at_standard.kernel.source_id
    for wanted in ("previous", first):
        html = text_of(client, f"/kernels/{second}?diff={wanted}&run={at_standard.pk}")
        assert f'href="/kernels/{first}?run={older.pk}"' in html.split('id="diff"')[1]


def test_a_comparison_takes_no_run_of_others(older: Run, client: Client) -> None:
    newest = second_attempt(older)[-1]
    digests = f"{older.kernel.source_id},{newest.kernel.source_id}"
    hidden = factory.make_submission("Secret", visibility=Visibility.PRIVATE)
    secret = factory.make_run(factory.make_kernel(hidden, older.kernel.problem), size="standard")
    factory.finish(secret, factory.make_report(secret))
    assert secret.kernel.source_id == older.kernel.source_id
    for wanted in (secret.pk, "0", "<b>"):
        found = client.get(f"/compare.json?kernels={digests}&run={wanted}").json()["kernels"]
        assert found[1]["run"] == str(newest.pk)


def test_runs_of_two_judges_are_told_apart(older: Run, client: Client) -> None:
    again = factory.make_run(older.kernel, size="standard")
    factory.finish(again, factory.make_report(again, judge_version="1"))
    address = f"/kernels/{older.kernel.source_id}"
    rows = csv.DictReader(client.get(f"{address}.csv").text.splitlines())
    assert [row["judge"] for row in rows] == ["1", CURRENT_JUDGE, CURRENT_JUDGE]
    runs = text_of(client, address).partition('id="runs"')[2]
    assert '<th scope="col">Judge</th>' in runs
    assert "<td>hardened</td><td>1</td>" in runs


def test_results_of_another_judge_are_not_beside_those_of_this_one(
    older: Run, problem: Problem, client: Client
) -> None:
    beside = factory.make_kernel(older.kernel.submission, problem, attempt=2, source="x = 2\n")
    other = factory.make_run(beside, size="standard")
    factory.finish(other, replace(factory.make_report(other), judge_version="4"))
    address = f"/kernels/{older.kernel.source_id}"
    html = text_of(client, f"{address}?run={older.pk}")
    table = html[html.index('id="attempts"') : html.index('id="runs"')]
    assert f"hardened inputs, judge {CURRENT_JUDGE}." in table
    (link,) = re.findall(r'href="([^"]+[.]csv[?]table=attempts[^"]*)"', table)
    assert link == f"{address}.csv?table=attempts&run={older.pk}"
    rows = list(csv.DictReader(client.get(link).content.decode().splitlines()))
    assert [(row["attempt"], row["verdict"]) for row in rows] == [("1", "ok"), ("2", "")]
