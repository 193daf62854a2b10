"""The search box finds what is public, asks little, and never gives a secret away."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from leaderboard.models import Hardware, Kernel, Problem, Run, Visibility
from leaderboard.site_pages.search_index import MOST, SearchHit, find, hexadecimal
from tests.leaderboard import factory

pytestmark = [pytest.mark.django_db, pytest.mark.server]


@pytest.fixture
def run() -> Run:
    factory.make_problem(2, "ring_attention", "expert")
    factory.make_problem(12, "ring_attention_backward", "expert")
    return factory.make_judged(factory.make_submission("Model One"), factory.make_problem())


def kinds(found: list[SearchHit]) -> list[tuple[str, bool]]:
    return [(one.kind, one.exact) for one in found]


def test_problems_are_found_by_number_slug_title_and_category(run: Run) -> None:
    assert [one.title for one in find("ring attention")] == [
        "2. Problem ring_attention",
        "12. Problem ring_attention_backward",
    ]
    assert kinds(find("ring_attention")) == [("Problem", True), ("Problem", False)]
    assert kinds(find("Expert PARALLEL")) == [("Category", True), *[("Problem", False)] * 2]
    assert kinds(find("12")) == [("Problem", True)]
    assert kinds(find("backward ring")) == [("Problem", False)]
    assert [one.title for one in find("ring-attention")] == [
        one.title for one in find("ring attention")
    ]


def test_titles_with_a_word_that_begins_so_come_first(client: Client) -> None:
    for number, title in ((1, "Row normalisation"), (2, "All-gather"), (3, "Small call")):
        factory.make_problem(number, f"problem-{number}")
        Problem.objects.filter(pk=number).update(title=title)
    assert [one.title for one in find("all")] == [
        "2. All-gather",
        "1. Row normalisation",
        "3. Small call",
    ]
    assert [one.title for one in find("small all")] == ["3. Small call"]


def test_categories_and_hardware_are_found(run: Run, client: Client) -> None:
    Hardware.objects.create(slug="h200x2", title="2 x NVIDIA H200", device="cuda", max_world_size=2)
    found = find("nvidia")
    assert [(one.kind, one.title, one.url) for one in found] == [
        ("Source codebase", "NVIDIA/nccl", "/problems?source=NVIDIA%2Fnccl"),
        ("Hardware", "h200x2", "/hardware/h200x2"),
    ]
    for asked, address in (("h200x2", "/hardware/h200x2"), ("nvidia h200", None)):
        assert client.get("/search", {"q": asked}).get("Location") == address
    assert ("Category", False) in kinds(find("tens"))
    text = client.get("/search?q=tensor").content.decode()
    assert "<h2>Category</h2>" in text
    assert 'href="/categories/tensor"' in text


@pytest.mark.parametrize(
    ("asked", "kind", "address"),
    [
        ("Megatron", "Source codebase", "/problems?source=NVIDIA%2FMegatron-LM"),
        ("megatron-lm", "Source codebase", "/problems?source=NVIDIA%2FMegatron-LM"),
        ("triton", "Backend", "/?backend=triton"),
        ("TMA", "Mechanism", "/?mechanism=tma"),
        ("sm_load_store", "Mechanism", "/?mechanism=sm_load_store"),
        ("Agentic", "Harness", "/?harness=agentic"),
        ("zero shot", "Harness", "/?harness=zero-shot"),
    ],
)
def test_what_lists_are_filtered_by_leads_to_them(
    asked: str, kind: str, address: str, run: Run, client: Client
) -> None:
    problem = Problem.objects.get(number=2)
    problem.payload = {**problem.payload, "source": "NVIDIA/Megatron-LM"}
    problem.save()
    assert (kind, address) in [(one.kind, one.url) for one in find(asked)]
    assert client.get(address).status_code == 200


def test_the_only_exact_match_is_led_to(run: Run, client: Client) -> None:
    for asked, address in (
        ("12", "/problems/12-ring_attention_backward"),
        ("Problem 12", "/problems/12-ring_attention_backward"),
        ("problem #1", "/problems/1-allreduce"),
        (f"submission {run.kernel.submission_id}", f"/submissions/{run.kernel.submission_id}"),
        ("allreduce", "/problems/1-allreduce"),
        (" Model  One ", f"/models/{run.kernel.submission.model.slug}"),
        (str(run.id), f"/runs/{run.id}"),
        (str(run.id)[:9], f"/runs/{run.id}"),
        (run.kernel.source_id[:8].upper(), f"/kernels/{run.kernel.source_id}"),
        (run.kernel.source_id, f"/kernels/{run.kernel.source_id}"),
    ):
        assert client.get("/search", {"q": asked}).get("Location") == address, asked


def test_several_matches_are_listed(run: Run, client: Client) -> None:
    text = client.get("/search?q=ring_attention").content.decode()
    assert text.index("2. Problem ring_attention<") < text.index("12. Problem ring_attention_b")
    assert client.get("/search?q=model").status_code == 200
    number = run.kernel.submission_id
    factory.make_problem(number, "of-that-number") if number not in (1, 2, 12) else None
    both = client.get(f"/search.json?q={number}").json()["results"]
    # The digest in the model's address may hold the number, which differs on PostgreSQL.
    assert {one["kind"] for one in both} - {"Model"} == {"Problem", "Submission"}
    assert b"kind,title,note,url,exact" in client.get("/search.csv?q=ring").content


@pytest.mark.parametrize("asked", ["", "x" * 500, "%", "'; --", "<script>", "\u202e"])
def test_odd_questions_have_an_answer(asked: str, run: Run, client: Client) -> None:
    response = client.get("/search", {"q": asked})
    assert response.status_code == 200
    assert "<script>" not in response.content.decode().split("</head>")[1].split("<script src")[0]
    assert "\u202e" not in response.content.decode()


def test_no_character_of_a_name_stands_for_others(run: Run) -> None:
    factory.make_submission("50%_of\\Model")
    for asked in ("50%_of", "%_", "_OF\\m"):
        assert [one.title for one in find(asked)] == ["50%_of\\Model"], asked
    for asked in ("m%l o", "m_del", "5%_of"):
        assert find(asked) == [], asked


def test_few_digits_find_neither_kernels_nor_runs(run: Run) -> None:
    assert hexadecimal("abcde") is None
    assert hexadecimal("abcdeg") is None
    assert hexadecimal("ABCDEF".casefold()) == "abcdef"
    assert find(run.kernel.source_id[:5]) == []


@pytest.mark.parametrize("visibility", [Visibility.PRIVATE, Visibility.UNLISTED])
def test_what_is_not_public_is_never_found(visibility: str, client: Client) -> None:
    hidden = factory.make_submission("Secret Model", visibility=visibility)
    run = factory.make_judged(hidden, factory.make_problem(77))
    client.force_login(factory.make_user("owner"))
    for asked in ("secret", hidden.model.slug, str(hidden.pk), run.kernel.source_id, str(run.id)):
        found = client.get("/search.json", {"q": asked}).json()["results"]
        assert found == [], asked


def test_an_unlisted_use_is_not_given_away_by_a_public_one(client: Client) -> None:
    problem, other = factory.make_problem(), factory.make_problem(2, "gemm")
    secret = factory.make_submission("Secret Model", visibility=Visibility.UNLISTED)
    factory.make_kernel(secret, other)
    factory.make_kernel(factory.make_submission("Open Model"), problem)
    digest = Kernel.objects.values_list("source", flat=True)[0]
    found = client.get("/search.json", {"q": digest[:10]}).json()["results"]
    assert [one["note"] for one in found] == ["Problem allreduce"]


def test_what_is_found_says_that_its_source_is_withheld(client: Client) -> None:
    problem, other = factory.make_problem(), factory.make_problem(2, "gemm")
    closed = factory.make_submission("Closed", withholds_source=True)
    run = factory.make_judged(closed, problem)

    def noted(asked: object) -> list[str]:
        results = client.get("/search.json", {"q": str(asked)}).json()["results"]
        kinds = ("Submission", "Kernel", "Run")
        return [one["note"] for one in results if one["kind"] in kinds]

    digest = run.kernel.source_id
    for asked in (closed.pk, digest, run.pk):
        assert ["source withheld" in note for note in noted(asked)] == [True], asked
    source = run.kernel.source.text or ""
    factory.make_kernel(factory.make_submission("Open"), other, source=source)
    assert noted(digest) == ["Problem allreduce, Problem gemm"]
    assert "source withheld" in noted(run.pk)[0]


def test_a_hostile_name_is_harmless_in_results(client: Client) -> None:
    hostile = '<img src=x onerror="alert(1)">\u202e'
    factory.make_judged(factory.make_submission(f"Two {hostile}"), factory.make_problem())
    factory.make_submission(f"Two more {hostile}")
    text = client.get("/search?q=two").content.decode()
    assert "<img" not in text
    assert "\u202e" not in text
    assert text.count("[U+202E]") == 2


@pytest.mark.parametrize("asked", ["1", "123456", "1234567", "decade", "abc123", "model"])
def test_a_search_asks_at_most_four_things(asked: str, run: Run, client: Client) -> None:
    with CaptureQueriesContext(connection) as queries:
        client.get("/search", {"q": asked})
    assert len(queries) <= 4


def test_digests_and_ids_are_found_in_an_index(run: Run) -> None:
    with CaptureQueriesContext(connection) as queries:
        find(run.kernel.source_id[:8])
    assert not [q["sql"] for q in queries if "LIKE" in q["sql"] and "source" in q["sql"]]


def test_results_are_bounded() -> None:
    for number in range(MOST + 5):
        factory.make_submission(f"Model {number}")
    assert len(find("model")) == MOST


def test_other_programs_can_ask(client: Client) -> None:
    response = client.get("/opensearch.xml")
    root = ET.fromstring(response.content)
    space = "{http://a9.com/-/spec/opensearch/1.1/}"
    templates = [url.attrib["template"] for url in root.iter(f"{space}Url")]
    assert "http://testserver/search?q={searchTerms}" in templates
