"""Submissions that were not judged alike: why they are not compared, and where they can be."""

from __future__ import annotations

import html
import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from leaderboard.models import Run, Submission
from tests.leaderboard import factory

pytestmark = [pytest.mark.django_db, pytest.mark.server]


@pytest.fixture
def pair() -> tuple[Submission, Submission]:
    """Two problems that both were judged on."""
    first, second = factory.make_submission("Model One"), factory.make_submission("Model Two")
    for n in (1, 2):
        for submission in (first, second):
            factory.make_judged(submission, factory.make_problem(n, f"problem-{n}"))
    return first, second


def judged_on_upstream_inputs(submission: Submission) -> None:
    kernel = factory.make_kernel(submission, factory.make_problem(), attempt=2)
    run = factory.make_run(kernel, profile="upstream")
    factory.finish(run, factory.make_report(run))


def test_what_was_judged_elsewhere_is_said_and_stays_chosen(
    pair: tuple[Submission, Submission], client: Client
) -> None:
    """Whoever chooses other hardware must not lose what they had chosen, nor see half of it."""
    third = factory.make_submission("Model Three")
    for submission in (*pair, third):
        judged_on_upstream_inputs(submission)
    asked = f"/compare?a={pair[0].pk}&b={third.pk}&c={third.model.slug}&d={pair[1].pk}"
    with CaptureQueriesContext(connection) as queries:
        response = client.get(asked)
    text = response.content.decode()
    assert response.status_code == 200
    assert len([q for q in queries if "dataversion" not in q["sql"]]) <= 4
    assert f"Not judged in this setting: submission {third.pk}, {third.model.slug}" in text
    assert (
        f'<option value="{third.pk}" selected>submission {third.pk}, not judged here</option>'
        in text
    )
    assert "Solved by" not in text
    link = text.split('All of them were judged under <a href="')[1].partition('"')[0]
    assert client.get(html.unescape(link)).content.decode().count("Solved by all 3") == 1
    assert client.get(f"{asked}&profile=upstream").content.decode().count("Solved by all 3") == 1


def test_where_all_were_never_judged_it_leads_to_most_of_them(
    pair: tuple[Submission, Submission], client: Client
) -> None:
    third, unjudged = factory.make_submission("Model Three"), factory.make_submission("Model Four")
    for submission in (pair[0], third):
        judged_on_upstream_inputs(submission)
    asked = f"/compare?a={pair[0].pk}&b={third.pk}&c={unjudged.pk}"
    assert "2 of them were judged under" in client.get(asked).content.decode()
    there = client.get(f"{asked}&profile=upstream").content.decode()
    assert "Compare the others</a>, or choose another submission." in there
    assert "It was not judged in any setting yet." in there
    alone = client.get(f"/compare?a={third.pk}").content.decode()
    assert "It was judged under" in alone


def test_two_that_never_met_are_told_why_and_where_each_can_be_compared(
    pair: tuple[Submission, Submission], client: Client
) -> None:
    older, peer = factory.make_submission("Model Three"), factory.make_submission("Model Four")
    for submission in (older, peer):
        run = factory.make_run(factory.make_kernel(submission, factory.make_problem()))
        factory.finish(run, factory.make_report(run, judge_version="0"))
    asked = f"/compare?a={pair[0].pk}&b={older.pk}"
    with CaptureQueriesContext(connection) as queries:
        text = client.get(asked).content.decode()
    assert len([q for q in queries if "dataversion" not in q["sql"]]) <= 4
    assert "Nothing to set side by side" in text
    (judge,) = set(Run.objects.exclude(judge_version="0").values_list("judge_version", flat=True))
    assert f"No setting has results of both: they differ in judge ({judge} against 0)." in text
    links = re.findall(r'<a href="([^"]+)">[^<]+, judge [^<]+</a> with 1 other\b', text)
    assert len(links) == 2
    for link, submission in zip(links, (pair[0], older), strict=True):
        page = client.get(html.unescape(link)).content.decode()
        assert f'<option value="{submission.pk}" selected>' in page
        assert "Choose another to compare it with." in page


def test_who_was_judged_alone_is_not_sent_to_look_for_another(
    pair: tuple[Submission, Submission], client: Client
) -> None:
    judged_on_upstream_inputs(lonely := factory.make_submission("Model Three"))
    text = client.get(f"/compare?a={pair[0].pk}&b={lonely.pk}").content.decode()
    assert "they differ in inputs (hardened against upstream)" in text
    assert "Nothing else was judged where it was." in text
    found = client.get(f"/compare.json?a={pair[0].pk}&b={lonely.pk}").json()
    assert found["absent"] == [str(lonely.pk)]
    assert found["apart"] == ["inputs (hardened against upstream)"]
    there = client.get(f"/compare?a={lonely.pk}&profile=upstream").content.decode()
    assert "No other was judged in this setting: choose another setting." in there


def test_a_model_that_was_only_published_is_compared_by_category(
    pair: tuple[Submission, Submission], client: Client
) -> None:
    factory.make_publication()
    claimed, ours = factory.make_model("Claimed Model").slug, pair[0].model.slug
    for form in ("", ".json"):
        asked = f"/compare{form}?a={claimed}&b={pair[0].pk}&profile=hardened&c=nobody"
        there = client.get(asked)["Location"]
        assert there == f"/categories{form}?models={ours},{claimed}&profile=hardened"
        assert client.get(there).status_code == 200
    by_category = f'<a href="/categories?models={claimed}#table">compare it with others'
    assert by_category in client.get(f"/models/{claimed}").content.decode()
    assert by_category not in client.get(f"/models/{ours}").content.decode()
    for page in ("/", "/compare"):
        assert '<a href="/categories#table">by category</a>' in client.get(page).content.decode()
    says = "Of published results only these counts are known"
    assert says in client.get("/categories").content.decode()
    assert says not in client.get(f"/categories?models={ours}").content.decode()


def test_a_submission_leads_to_a_comparison_where_it_was_judged(
    pair: tuple[Submission, Submission], client: Client
) -> None:
    made = factory.make_submission("Model Three")
    judged_on_upstream_inputs(made)
    page = client.get(f"/submissions/{made.pk}").content.decode()
    link = page.split('">compare with others')[0].rpartition('href="')[2].replace("&amp;", "&")
    assert "profile=upstream" in link
    assert "One submission is chosen" in client.get(link).content.decode()
