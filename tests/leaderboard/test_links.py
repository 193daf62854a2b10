"""What makes the site worth linking to: feed, badges, site map, previews."""

from __future__ import annotations

import html
import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evaluator.messages.report import Verdict
from leaderboard.models import DataVersion, LanguageModel, Run, Submission, Visibility
from leaderboard.publishing import badges
from leaderboard.publishing.feed import MOST
from leaderboard.read_model import calibration
from tests.leaderboard import factory

pytestmark = pytest.mark.django_db

ATOM = "{http://www.w3.org/2005/Atom}"
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "<b onload='x'>\"&]]>\x08\u202e"


@pytest.fixture
def run() -> Run:
    return factory.make_judged(factory.make_submission("Model One"), factory.make_problem())


def entries(client: Client) -> list[tuple[str, str]]:
    """Kind and title of what the feed tells."""
    root = ET.fromstring(client.get("/feed.atom").content)
    found = []
    for entry in root.iter(f"{ATOM}entry"):
        category, title = entry.find(f"{ATOM}category"), entry.findtext(f"{ATOM}title")
        assert category is not None
        found.append((category.attrib["term"], title or ""))
    return found


def test_the_feed_tells_of_records_and_arrivals(run: Run, client: Client) -> None:
    second = factory.make_submission("Model Two")
    factory.make_judged(second, run.kernel.problem, speedup=0.9)
    told = entries(client)
    assert ("record", "1. Problem allreduce: 1.30× on 2 ranks of cpu by Model One") in told
    assert {title for kind, title in told if kind == "submission"} == {
        f"Submission {run.kernel.submission_id}, zero-shot by Model One",
        f"Submission {second.pk}, zero-shot by Model Two",
    }
    factory.make_judged(second, run.kernel.problem, speedup=1.6)
    records = [title for kind, title in entries(client) if kind == "record"]
    assert records == ["1. Problem allreduce: 1.60× on 2 ranks of cpu by Model Two"]


def test_the_feed_tells_no_record_that_chance_may_have_made(run: Run, client: Client) -> None:
    other = factory.make_problem(2, "b")
    factory.make_judged(run.kernel.submission, other, speedup=1.03)  # from 0.99
    house = factory.make_submission("The baseline")
    LanguageModel.objects.filter(pk=house.model_id).update(is_baseline=True)
    factory.make_judged(house, factory.make_problem(3, "c"), speedup=2.0)
    records = [title for kind, title in entries(client) if kind == "record"]
    assert records == ["1. Problem allreduce: 1.30× on 2 ranks of cpu by Model One"]


def test_the_feed_counts_in_words(run: Run, client: Client) -> None:
    assert "New on the leaderboard: 1 attempt a problem, judged on cpu, 2 ranks," in told_by(client)
    Submission.objects.filter(pk=run.kernel.submission_id).update(k=3)
    DataVersion.objects.bump()
    assert "New on the leaderboard: 3 attempts a problem," in told_by(client)


def told_by(client: Client) -> str:
    return client.get("/feed.atom").content.decode()


def test_a_record_holds_in_its_setting_only(run: Run, client: Client) -> None:
    elsewhere = factory.make_run(
        factory.make_kernel(factory.make_submission("Model Two"), run.kernel.problem),
        dtype="bfloat16",
    )
    factory.finish(elsewhere, factory.make_report(elsewhere, speedup=9.0))
    assert len([kind for kind, _ in entries(client) if kind == "record"]) == 2


def test_the_feed_is_valid_whatever_names_it_holds(client: Client) -> None:
    factory.make_judged(factory.make_submission(HOSTILE), factory.make_problem())
    text = client.get("/feed.atom").content.decode()
    assert len(entries(client)) == 2
    assert "<b" not in text
    assert "\u202e" not in text


def test_the_feed_says_nothing_of_what_is_not_ranked(run: Run, client: Client) -> None:
    for visibility in (Visibility.PRIVATE, Visibility.UNLISTED):
        hidden = factory.make_submission("Secret Model", visibility=visibility)
        factory.make_judged(hidden, run.kernel.problem, speedup=50.0)
    assert "Secret" not in client.get("/feed.atom").content.decode()
    assert len(entries(client)) == 2
    submission = run.kernel.submission
    submission.moderation, submission.moderation_reason = "invalidated", "Copied."
    submission.save()
    DataVersion.objects.bump()
    assert entries(client) == []


def test_a_baseline_is_no_news_and_holds_no_place(run: Run, client: Client) -> None:
    baseline = factory.make_submission("PyTorch and NCCL")
    baseline.model.is_baseline = True
    baseline.model.save()
    factory.make_judged(baseline, run.kernel.problem, speedup=1.9)
    told = entries(client)
    assert len(told) == 2
    assert not [title for _, title in told if "NCCL" in title]
    assert (
        said_by(client, f"/badges/submissions/{baseline.pk}.svg")[0]
        == "PKB 100 % faster than NCCL on 2 ranks of cpu"
    )
    assert '<tr class="claimed"><th scope="row"' in client.get("/matrix").content.decode()


def test_the_feed_is_bounded_and_answers_conditions(client: Client) -> None:
    problem = factory.make_problem()
    for number in range(MOST + 3):
        factory.make_judged(factory.make_submission(f"Model {number}"), problem)
    with CaptureQueriesContext(connection) as queries:
        first = client.get("/feed.atom")
    assert len(queries) <= 4
    assert first["Content-Type"].startswith("application/atom+xml")
    assert len(entries(client)) == MOST
    again = client.get("/feed.atom", headers={"If-None-Match": first["ETag"]})
    assert again.status_code == 304


def said_by(client: Client, address: str) -> tuple[str, str]:
    """Text and hidden title of a badge."""
    response = client.get(address)
    assert response["Content-Type"] == "image/svg+xml"
    root = ET.fromstring(response.content)
    return " ".join(text.text or "" for text in root.iter(f"{SVG}text")), str(
        root.findtext(f"{SVG}title")
    )


def test_a_badge_says_share_and_place(run: Run, client: Client) -> None:
    factory.make_problem(2, "gemm")
    worse = factory.make_submission("Model Two")
    factory.make_judged(worse, run.kernel.problem, Verdict.TIMEOUT)
    best = run.kernel.submission
    assert (
        said_by(client, f"/badges/submissions/{best.pk}.svg")[0]
        == "PKB 50 % faster than NCCL on 2 ranks of cpu · places 1–2"
    )
    assert (
        said_by(client, f"/badges/submissions/{worse.pk}.svg")[0]
        == "PKB 0 % faster than NCCL on 2 ranks of cpu · places 1–2"
    )
    assert said_by(client, f"/badges/models/{best.model.slug}.svg")[0].endswith("places 1–2")
    claimed = factory.make_publication().results.all()[0].model
    assert said_by(client, f"/badges/models/{claimed.slug}.svg")[0] == "PKB not ranked yet"


def test_a_badge_says_when_a_submission_was_disputed(run: Run, client: Client) -> None:
    submission = run.kernel.submission
    submission.moderation, submission.moderation_reason = "disputed", "Copied."
    submission.save()
    DataVersion.objects.bump()
    assert said_by(client, f"/badges/submissions/{submission.pk}.svg")[0] == "PKB disputed"


def test_a_badge_is_wide_enough_and_escapes_names(client: Client) -> None:
    run = factory.make_judged(factory.make_submission(HOSTILE), factory.make_problem())
    address = f"/badges/submissions/{run.kernel.submission_id}.svg"
    assert "<b onload='x'>" in said_by(client, address)[1]  # as text: it was parsed as XML
    text = client.get(address).content.decode()
    assert "<b" not in text
    assert "\u202e" not in text
    short, long = badges.width_px("4 % correct"), badges.width_px("41 % correct · place 3")
    assert 60 < short < long < 200
    etag = client.get(address)["ETag"]
    with CaptureQueriesContext(connection) as queries:
        client.get(address, headers={"If-None-Match": etag})
    assert len(queries) <= 2


def test_there_is_no_badge_of_what_is_not_public(client: Client) -> None:
    for visibility in (Visibility.PRIVATE, Visibility.UNLISTED):
        hidden = factory.make_submission("Secret Model", visibility=visibility)
        factory.make_judged(hidden, factory.make_problem())
        assert client.get(f"/badges/submissions/{hidden.pk}.svg").status_code == 404
        assert client.get(f"/badges/models/{hidden.model.slug}.svg").status_code == 404
    assert client.get("/badges/models/nobody.svg").status_code == 404


def test_the_site_map_lists_what_is_public(run: Run, client: Client) -> None:
    hidden = factory.make_submission("Secret Model", visibility=Visibility.UNLISTED)
    with CaptureQueriesContext(connection) as queries:
        response = client.get("/sitemap.xml?p=2")
    assert len(queries) <= 4
    found = [element.text for element in ET.fromstring(response.content).iter() if element.text]
    for address in (
        "/",
        "/matrix",
        "/hardware",
        *(f"/hardware/{slug}" for slug in ("cpu", *calibration.of_release())),
        f"/models/{run.kernel.submission.model.slug}",
        "/snapshots",
        "/categories/tensor",
        "/problems/1-allreduce",
        f"/submissions/{run.kernel.submission_id}",
    ):
        assert f"http://testserver{address}" in found, address
    assert f"http://testserver/submissions/{hidden.pk}" not in found
    for address in (one for one in found if one.startswith("http://testserver/")):
        assert client.get(address.removeprefix("http://testserver")).status_code == 200, address


def test_robots_are_told_of_the_site_map(client: Client) -> None:
    text = client.get("/robots.txt").content.decode()
    assert "Sitemap: http://testserver/sitemap.xml" in text
    assert "Disallow: /admin/" in text


def metas(text: str) -> dict[str, str]:
    return dict(re.findall(r'<meta (?:property|name)="([\w:]+)" content="([^"]*)"', text))


def test_a_page_says_where_it_is_and_how_it_looks_when_linked(run: Run, client: Client) -> None:
    text = client.get("/?utm_source=x&sort=pass1").content.decode()
    assert '<link rel="canonical" href="http://testserver/?sort=pass1">' in text
    said = metas(text)
    assert said["og:title"] == "Leaderboard · PKB Leaderboard"
    assert said["og:image"] == "http://testserver/leaderboard.png?sort=pass1"
    assert said["og:description"] == said["description"]
    assert said["twitter:card"] == "summary_large_image"
    assert 'type="application/atom+xml"' in text
    assert 'type="application/opensearchdescription+xml"' in text


def test_each_page_previews_what_it_shows(run: Run, client: Client) -> None:
    kernel = run.kernel
    model = kernel.submission.model
    told = {
        "/problems": "1 scored multi-GPU problem",
        f"/problems/1-{kernel.problem.slug}": "Solved by 1 of 1 submissions, at best 1.30× of",
        f"/kernels/{kernel.source_id}": f"{kernel.problem}, by {model.name}. ok: Correct in every",
        f"/runs/{run.pk}": f"{kernel.problem}, by {model.name}. ok: Correct in every",
        f"/models/{model.slug}": f"{model.name} by {model.vendor} solved 1 of the 1 problem",
        f"/submissions/{kernel.submission_id}": f"of {model.name}: 1 of 1 problem",
        "/hardware": "what each class was measured to reach",
        "/hardware/h200x2": "2 x NVIDIA H200: what its links",
        "/methodology": "what is left to doubt",
        "/status": "queues, hosts, newest runs",
    }
    for address, text in told.items():
        said = metas(client.get(address).content.decode())
        assert text in html.unescape(said["og:description"]), address
        assert said["og:description"] == said["description"]


def test_previews_are_escaped_and_private_pages_have_none(client: Client) -> None:
    factory.make_judged(factory.make_submission(HOSTILE), factory.make_problem())
    submission = Submission.objects.get()
    text = client.get(f"/submissions/{submission.pk}").content.decode()
    for name in ("og:title", "og:description"):
        shown = metas(text)[name]
        assert "<" not in shown
        assert "<b onload='x'>\"" in html.unescape(shown)
        assert "\u202e" not in shown
    secret = factory.make_submission("Secret Model", visibility=Visibility.PRIVATE)
    client.force_login(factory.make_user("owner"))
    assert "og:title" not in client.get(f"/submissions/{secret.pk}").content.decode()


@pytest.mark.parametrize("address", ["/", "/feed.atom", "/robots.txt", "/opensearch.xml"])
def test_the_public_address_is_a_setting(
    address: str, client: Client, settings: LazySettings
) -> None:
    plain = client.get(address).content.decode()
    settings.PKB_PUBLIC_URL = "https://pkb.example"
    text = client.get(address).content.decode()
    assert "http://testserver/" in plain
    assert "https://pkb.example/" in text
    assert "testserver" not in text


def test_with_any_host_allowed_a_request_does_not_name_the_site(
    client: Client, settings: LazySettings
) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    evil: dict[str, Any] = {"HTTP_HOST": "evil.example"}
    for address in ("/", "/feed.atom", "/robots.txt", "/opensearch.xml"):
        assert "evil.example" not in client.get(address, **evil).content.decode(), address
    assert client.get("/sitemap.xml", **evil).status_code == 404
