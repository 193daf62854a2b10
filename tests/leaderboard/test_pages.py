"""Every page answers, its twins hold the same, and it asks the database little."""

from __future__ import annotations

import gzip
import json

import plotly.graph_objects as go
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evaluator.messages.report import Verdict
from leaderboard.models import DataVersion, Run
from tests.leaderboard import factory
from tests.leaderboard.running import NO_TRITON, decline

pytestmark = [pytest.mark.django_db, pytest.mark.server]


@pytest.fixture
def site() -> dict[str, str]:
    """A site with a claim, two submissions and four runs; addresses by name."""
    factory.make_publication()
    one, two = factory.make_problem(), factory.make_problem(2, "gemm", "expert")
    first = factory.make_submission("Model One", k=2)
    done = factory.make_judged(first, one, speedup=2.0)
    failed = factory.make_judged(first, one, Verdict.OUTPUT_MISMATCH)
    factory.make_judged(first, two, speedup=0.5)
    second = factory.make_submission("Model Two", "agentic")
    factory.make_judged(second, one, speedup=1.5)
    waiting = factory.make_run(factory.make_kernel(second, two, source="def solution(): ...\n"))
    return {
        "board": "/",
        "categories": "/categories",
        "problems": "/problems",
        "problem": f"/problems/1-{one.slug}",
        "kernel": f"/kernels/{done.kernel.source_id}",
        "failed kernel": f"/kernels/{failed.kernel.source_id}",
        "waiting kernel": f"/kernels/{waiting.kernel.source_id}",
        "run": f"/runs/{done.id}",
        "waiting run": f"/runs/{waiting.id}",
        "submission": f"/submissions/{first.pk}",
        "model": f"/models/{first.model.slug}",
        "claimed model": f"/models/{factory.make_model('Claimed Model').slug}",
        "methodology": "/methodology",
        "status": "/status",
    }


PAGES = (
    *("board", "categories", "problems", "problem", "kernel", "failed kernel", "waiting kernel"),
    *("run", "waiting run", "submission", "model", "claimed model", "methodology", "status"),
)
NO_TABLE = ("waiting run",)
# Abilities of hosts that it may wait for, and who is served before it.
MORE_QUERIES = {"waiting run": 5, "board": 2, "problem": 2, "submission": 1}


APART = "Nothing was judged under all of these at once. Nearest: "


@pytest.mark.parametrize(
    "page", ["/", "/matrix", "/problems", "/problems/1-allreduce", "/categories", "/compare"]
)
def test_settings_that_do_not_go_together_lead_to_the_nearest(page: str, client: Client) -> None:
    kernel = factory.make_kernel(factory.make_submission(), factory.make_problem())
    for dtype, size in (("float32", "tiny"), ("bfloat16", "standard")):
        run = factory.make_run(kernel, dtype=dtype, size=size)
        factory.finish(run, factory.make_report(run))
    text = client.get(f"{page}?dtype=float32&size=standard&x=1").content.decode()
    assert "on this problem" not in text.split("<main")[1].split("Statement")[0]
    link = text.split(APART)[1].split('href="')[1].split('"')[0].replace("&amp;", "&")
    assert link.startswith(f"{page}?hardware=cpu&ranks=2&size=standard&dtype=bfloat16&")
    found = client.get(link)
    assert found.status_code == 200
    assert APART not in found.content.decode()
    assert APART not in client.get(page).content.decode()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_and_its_twins_answer(name: str, site: dict[str, str], client: Client) -> None:
    page = client.get(site[name])
    assert page.status_code == 200
    text = page.content.decode()
    assert text.count("<h1") == 1
    stem = "/leaderboard" if name == "board" else site[name]
    twin = client.get(f"{stem}.json")
    assert twin.status_code == 200
    json.loads(twin.content)
    table = client.get(f"{stem}.csv")
    assert table.status_code == (404 if name in NO_TABLE else 200)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_needs_at_most_four_queries_besides_the_version(
    name: str, site: dict[str, str], client: Client
) -> None:
    with CaptureQueriesContext(
        connection,
    ) as queries:
        client.get(site[name])
    own = [q["sql"] for q in queries if "dataversion" not in q["sql"]]
    assert len(own) <= 4 + MORE_QUERIES.get(name, 0), own


def test_an_empty_site_has_pages_too(client: Client) -> None:
    for address in ("/", "/categories", "/problems", "/methodology", "/status", "/submit"):
        assert client.get(address).status_code == 200, address


def test_whoever_has_no_mouse_can_scroll_the_request(client: Client) -> None:
    page = client.get("/submit").content.decode()
    assert '<div class="source" tabindex="0" role="region" aria-label=' in page


def test_a_page_is_kept_until_public_data_changes(site: dict[str, str], client: Client) -> None:
    first = client.get("/")
    etag = first["ETag"]
    with CaptureQueriesContext(connection) as queries:
        again = client.get("/", headers={"If-None-Match": etag})
    assert again.status_code == 304
    assert len(queries) == 1
    DataVersion.objects.bump()
    changed = client.get("/", headers={"If-None-Match": etag})
    assert changed.status_code == 200
    assert changed["ETag"] != etag


def test_a_public_page_touches_neither_session_nor_user(
    site: dict[str, str], client: Client
) -> None:
    client.force_login(factory.make_user())
    for name in PAGES:
        response = client.get(site[name])
        assert "Cookie" not in response.get("Vary", ""), name
        assert not response.cookies, name


def test_unknown_parameters_do_not_make_another_page(site: dict[str, str], client: Client) -> None:
    assert client.get("/")["ETag"] == client.get("/?utm_source=x")["ETag"]
    assert client.get("/")["ETag"] != client.get("/?sort=pass1")["ETag"]


def test_a_compressed_body_is_the_same_body(site: dict[str, str], client: Client) -> None:
    plain = client.get("/")
    packed = client.get("/", headers={"Accept-Encoding": "gzip"})
    assert packed["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.content) == plain.content


@pytest.mark.parametrize(
    "address",
    ["/?sort=nonsense", "/?category=x", "/?profile=x", "/categories?metric=x"],
)
def test_a_parameter_that_cannot_be_read_is_a_clear_400(
    address: str, site: dict[str, str], client: Client
) -> None:
    response = client.get(address)
    assert response.status_code == 400
    assert "or use one of" in response.content.decode()


def test_the_board_orders_places_and_marks_claims(site: dict[str, str], client: Client) -> None:
    rows = client.get("/leaderboard.json").json()["rows"]
    by_model = {row["model"]: row for row in rows}
    assert by_model["Claimed Model"]["place"] is None
    assert by_model["Claimed Model"]["claimed"] is True
    # Model Two: one of two problems, correct and faster; Model One: half of two attempts.
    assert by_model["Model Two"]["place"] == "1"
    assert by_model["Model Two"]["fast1"] == 0.5
    assert by_model["Model One"]["fast1"] == 0.25
    assert by_model["Model One"]["passk"] == 1.0
    assert by_model["Model One"]["speedup"] == pytest.approx(1.0)
    assert by_model["Claimed Model"]["pass1"] == pytest.approx(28 / 87)
    assert "claimed" in client.get("/").content.decode()


def test_a_category_changes_the_denominator(site: dict[str, str], client: Client) -> None:
    rows = client.get("/leaderboard.json?category=expert").json()["rows"]
    assert [(row["model"], row["scored"], row["pass1"]) for row in rows] == [("Model One", 1, 1.0)]


def test_a_disputed_submission_leaves_the_board_and_stays_reachable(
    site: dict[str, str], client: Client
) -> None:
    run = Run.objects.get(pk=site["run"].removeprefix("/runs/"))
    submission = run.kernel.submission
    submission.moderation, submission.moderation_reason = "disputed", "Copies the reference."
    submission.save()
    DataVersion.objects.bump()
    assert "Model One" not in client.get("/").content.decode()
    assert "Copies the reference." in client.get(site["submission"]).content.decode()


@pytest.mark.parametrize("name", ["fast-p", "failure-modes"])
def test_a_board_figure_is_served(name: str, site: dict[str, str], client: Client) -> None:
    response = client.get(f"/figures/{name}.json")
    assert response.status_code == 200
    assert response["ETag"]
    assert len(go.Figure(response.json()).data) > 1


@pytest.mark.parametrize("name", ["bursts", "margins", "speedups"])
def test_a_figure_of_one_run_or_submission_is_served(
    name: str, site: dict[str, str], client: Client
) -> None:
    keys = {"run": site["run"].split("/")[-1], "submission": site["submission"].split("/")[-1]}
    assert go.Figure(client.get(f"/figures/{name}.json", keys).json()).data
    assert client.get(f"/figures/{name}.json", {"run": "x", "submission": "y"}).status_code == 404


def test_missing_things_are_a_helpful_404(site: dict[str, str], client: Client) -> None:
    for address in (
        "/problems/999",
        "/problems/999-other",
        "/nowhere/",
        "/problems/1-allreduce.xml/",
        "/kernels/" + "0" * 64,
        "/runs/00000000-0000-0000-0000-000000000000",
        "/submissions/999999",
        f"/submissions/{1 << 63}",
        f"/problems/{1 << 63}-allreduce",
        "/models/nobody",
        "/figures/none.json",
        "/nowhere",
    ):
        assert client.get(address).status_code == 404, address


def test_a_problem_number_leads_to_its_page(site: dict[str, str], client: Client) -> None:
    assert client.get("/problems/1")["Location"] == site["problem"]
    assert client.get("/problems/1?ranks=2")["Location"] == f"{site['problem']}?ranks=2"
    assert client.get("/problems/999").status_code == 404
    for form in ("", ".json", ".csv"):
        led = client.get(f"/problems/1-other{form}?ranks=2")
        assert (led.status_code, led["Location"]) == (301, f"{site['problem']}{form}?ranks=2")


def test_a_slash_at_the_end_is_taken_away(site: dict[str, str], client: Client) -> None:
    for page in ("/problems", "/matrix", "/problems.csv", site["problem"], "/hardware"):
        led = client.get(f"{page}/?ranks=2")
        assert (led.status_code, led["Location"]) == (301, f"{page}?ranks=2"), page
    # Two slashes at the beginning would lead to another host.
    assert client.get("/", PATH_INFO="//problems//")["Location"] == "/problems"
    assert client.get("/", PATH_INFO="//elsewhere.example//").status_code == 404


def test_a_waiting_run_says_which_host_declined_it(site: dict[str, str], client: Client) -> None:
    address = site["waiting run"]
    assert "hidden data-declined" in client.get(address).content.decode()
    run = Run.objects.get(pk=address.removeprefix("/runs/"))
    decline(run, "host-1")
    decline(run, "host-2", "<b>\u202e")
    for page in (address, site["status"]):
        text = client.get(page).content.decode()
        assert "hidden data-declined" not in text
        assert "host-2 declined: &lt;b&gt;[U+202E]" in text
    assert f"host-1 declined: {NO_TRITON}" in client.get(address).content.decode()
    with CaptureQueriesContext(connection) as queries:
        client.get(address)
    assert len(queries) <= 9
    factory.start(run)
    assert "declined" not in client.get(site["status"]).content.decode()


def test_what_breaks_on_our_side_has_a_page(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leaderboard.board_pages.board.board_query", lambda request: 1 / 0)
    client.raise_request_exception = False
    response = client.get("/")
    assert response.status_code == 500
    assert "Something broke on our side" in response.content.decode()
