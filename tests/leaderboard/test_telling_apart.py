"""Submissions of one model are told apart by what differs."""

from __future__ import annotations

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.metrics.telling_apart import Submitted, names_of, told_apart
from leaderboard.models import Kernel, Problem, Source
from tests.leaderboard import factory

DAYS = ("2026-11-25", "2026-11-28")


def submitted(number: int, *backends: str, model: str = "A", day: str = DAYS[0]) -> Submitted:
    return Submitted(model, "zero-shot", number, backends, day)


def test_the_harness_is_enough_for_the_only_submission_of_a_model() -> None:
    assert told_apart([submitted(1, "cuda"), submitted(2, "cuda", model="B")]) == ["zero-shot"] * 2


def test_backends_come_before_days_and_days_before_numbers() -> None:
    rows = [
        submitted(1, "cuda"),
        submitted(2, "triton"),
        submitted(3, "triton", day=DAYS[1]),
        submitted(4, "triton", day=DAYS[1]),
        submitted(5, "cuda", model="B"),
    ]
    assert names_of(rows) == [
        "A (zero-shot, cuda)",
        "A (zero-shot, triton, 2026-11-25)",
        "A (zero-shot, triton, 2026-11-28, no. 3)",
        "A (zero-shot, triton, 2026-11-28, no. 4)",
        "B (zero-shot)",
    ]


def test_what_does_not_differ_is_not_said() -> None:
    assert told_apart([submitted(1, "cuda"), submitted(2, "cuda")]) == [
        "zero-shot, no. 1",
        "zero-shot, no. 2",
    ]


ROWS = st.lists(
    st.tuples(
        st.sampled_from("AB"),
        st.sampled_from(("zero-shot", "agentic")),
        st.lists(st.sampled_from(("cuda", "triton")), unique=True),
        st.sampled_from((*DAYS, None)),
    ),
    max_size=8,
)


@given(ROWS)
def test_no_two_names_are_the_same(
    drawn: list[tuple[str, str, list[str], str | None]],
) -> None:
    rows = [
        Submitted(model, harness, number, tuple(backends), day)
        for number, (model, harness, backends, day) in enumerate(drawn)
    ]
    assert len(set(names_of(rows))) == len(rows)


@pytest.mark.django_db
@pytest.mark.server
@pytest.mark.parametrize(
    "address",
    [
        "/matrix",
        "/categories",
        "/categories/tensor",
        "/problems/1-allreduce",
        "/compare",
        "/figures/failure-modes.csv",
        "/figures/category-heat.csv",
        "/figures/problem-failures.csv?problem=1",
    ],
)
def test_pages_and_figures_tell_two_submissions_of_a_model_apart(
    address: str, problem: Problem, client: Client
) -> None:
    for backend in ("triton", "cuda"):
        kernel = Kernel.objects.create(
            submission=factory.make_submission(),
            problem=problem,
            backend=backend,
            source=Source.objects.keep(f"{factory.SOURCE}# {backend}\n")[0],
        )
        run = factory.make_run(kernel)
        factory.finish(run, factory.make_report(run))
    answer = client.get(address)
    assert answer.status_code == 200
    for backend in ("triton", "cuda"):
        assert f"zero-shot, {backend}" in answer.text, address
