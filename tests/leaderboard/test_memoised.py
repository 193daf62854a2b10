"""What pages memoise of earlier ones: never anything that is not so any more."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from evaluator.messages.report import Verdict
from leaderboard.models import (
    Moderation,
    Problem,
    Publication,
    PublishedResult,
    Submission,
    Trust,
    Visibility,
)
from leaderboard.read_model import boards
from leaderboard.submissions import moderation
from tests.leaderboard import factory

pytestmark = pytest.mark.django_db

PROBLEM = "/problems/1-allreduce"
PAGES = (
    *("/", "/?p=1.5", "/?category=tensor", "/?nccl=no", "/?sort=cost", "/?sort=-model"),
    "/leaderboard.json",
    *("/matrix", "/matrix?category=tensor", "/matrix?nccl=no", "/matrix.csv"),
    *("/categories", "/categories/tensor", "/problems", PROBLEM, f"{PROBLEM}?attempts=all"),
)
Change = Callable[[Submission, User], object]


@pytest.fixture
def site() -> Submission:
    """One of three submissions at two problems, beside claims."""
    one, two = factory.make_problem(), factory.make_problem(2, "gemm", "expert")
    factory.make_publication()
    for n, name in enumerate(("Fast", "Close", "Slow")):
        submission = factory.make_submission(name, k=2)
        factory.make_judged(submission, one, speedup=2.0 - 0.6 * n)
        factory.make_judged(submission, two, Verdict.OUTPUT_MISMATCH)
    return Submission.objects.get(model__name="Close")


def asked(client: Client) -> dict[str, bytes]:
    """Every page, made anew."""
    found = {page: client.get(page) for page in PAGES}
    assert {response.status_code for response in found.values()} == {200}
    return {page: response.content for page, response in found.items()}


def forget() -> None:
    """Empty the caches with a bound that the site has."""
    modules = [module for name, module in sys.modules.items() if name.startswith("leaderboard")]
    for one in (value for module in modules for value in list(vars(module).values())):
        if isinstance(one, functools._lru_cache_wrapper) and one.cache_parameters()["maxsize"]:
            one.cache_clear()
    boards._MEMOISED.clear()


def rename(own: Submission, staff: User) -> None:
    moderation.edit(own.model, staff, name="<Renamed>", vendor="Other")


def make_baseline(own: Submission, staff: User) -> None:
    moderation.edit(own.model, staff, is_baseline=True)


def change(**values: Any) -> Change:
    return lambda own, _: Submission.objects.filter(pk=own.pk).update(**values)


def hide(own: Submission, staff: User) -> None:
    moderation.show(own, staff, Visibility.PRIVATE)


def dispute(own: Submission, staff: User) -> None:
    moderation.moderate(own, staff, Moderation.DISPUTED, "Not its own work.")


def judge_another(own: Submission, _: User) -> None:
    factory.make_judged(own, Problem.objects.get(number=2), speedup=3.0)


def judge_with_the_same_counts(own: Submission, _: User) -> None:
    """Only the speed of a kernel changes."""
    factory.make_judged(own, Problem.objects.get(number=1), speedup=2.6)


def restate(_: Submission, __: User) -> None:
    one = Problem.objects.get(number=1)
    one.payload = {**one.payload, "statement": "Another.", "tolerance_reason": "Other reasons"}
    one.save()


def correct_a_claim(_: Submission, __: User) -> None:
    PublishedResult.objects.update(correct_at_1=5, correct_at_3=6, fast_at_1=3, fast_at_3=4)


def date_a_claim(_: Submission, __: User) -> None:
    Publication.objects.update(date="2025", citation="Another.")


def unscore(_: Submission, __: User) -> None:
    Problem.objects.filter(number=2).update(scored=False, unscored_reason="Wrong.")


@pytest.mark.parametrize(
    ("changed", "touched"),
    [
        (
            rename,
            (
                "/",
                "/?nccl=no",
                "/?sort=-model",
                "/matrix",
                "/categories/tensor",
                "/leaderboard.json",
                PROBLEM,
            ),
        ),
        (make_baseline, ("/", "/matrix", "/categories/tensor")),
        (change(trust=Trust.SELF_REPORTED), ("/", "/categories/tensor")),
        (change(cost_usd=12.5), ("/?sort=cost",)),
        (change(harness="agentic"), ("/", "/matrix", "/categories/tensor")),
        (change(k=1), ("/leaderboard.json",)),
        pytest.param(
            *(hide, ("/", "/matrix", "/categories/tensor", PROBLEM)), marks=pytest.mark.server
        ),
        (dispute, ("/", "/matrix", "/categories/tensor", PROBLEM)),
        (judge_another, ("/", "/matrix", "/matrix?nccl=no", "/matrix.csv", "/problems")),
        (judge_with_the_same_counts, ("/", "/?p=1.5", "/?nccl=no", "/matrix?nccl=no")),
        (restate, (PROBLEM,)),
        (correct_a_claim, ("/", "/categories", "/categories/tensor", "/leaderboard.json")),
        (date_a_claim, ("/", "/categories")),
        (unscore, ("/", "/matrix", "/problems")),
    ],
)
def test_what_is_memoised_is_what_would_be_drawn(
    changed: Change, touched: tuple[str, ...], site: Submission, client: Client
) -> None:
    staff = User.objects.create_user("staff", is_staff=True)
    before = asked(client)
    changed(site, staff)
    after = asked(client)
    forget()
    assert asked(client) == after
    assert all(before[page] != after[page] for page in touched)


@pytest.mark.server
def test_under_a_filter_on_kernels_a_new_result_counts_only_its_own_row(
    site: Submission, client: Client
) -> None:
    forget()
    client.get("/?nccl=no")
    known = set(boards._MEMOISED)
    assert len(known) == 3
    judge_another(site, site.owner)
    client.get("/?nccl=no")
    assert len(set(boards._MEMOISED) - known) == 1


def test_what_is_memoised_is_bounded(
    site: Submission, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boards, "MOST_MEMOISED", 4)
    first = client.get("/?nccl=no").content
    for backend in ("cuda", "triton", "pytorch"):
        client.get(f"/?backend={backend}")
        assert len(boards._MEMOISED) <= 4
    assert client.get("/?nccl=no").content == first


@pytest.mark.server
def test_a_row_is_drawn_for_the_columns_of_its_board(site: Submission, client: Client) -> None:
    """A cost that one submission has opens a column in the rows of all."""

    def cells_of_fast() -> int:
        row = next(part for part in page().split("<tr")[1:] if ">Fast<" in part)
        return row.count("<td")

    def page() -> str:
        return client.get("/?columns=all").text

    narrow = cells_of_fast()
    Submission.objects.filter(pk=site.pk).update(cost_usd=1)
    assert cells_of_fast() == narrow + 1
