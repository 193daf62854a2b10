"""Prepared queries find what the same querysets find, and are written once."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.db.models import JSONField, QuerySet
from django.test.utils import CaptureQueriesContext

from leaderboard.kit.prepared import given, run_prepared
from leaderboard.models import Run, Submission
from tests.leaderboard import factory

pytestmark = pytest.mark.django_db
NAMES = ("pk", "model__name", "model__is_baseline", "created_at", "cost_usd")
BUILT: list[object] = []


def _rows(where: tuple[str, ...]) -> QuerySet[Submission, tuple[Any, ...]]:
    BUILT.append(where)
    return Submission.objects.filter(**given(where)).order_by("pk").values_list(*NAMES)


def _every_column(kind: str) -> QuerySet[Any, tuple[Any, ...]]:
    rows: Any = apps.get_model("leaderboard", kind)._default_manager
    found: QuerySet[Any, tuple[Any, ...]] = rows.order_by("pk").values_list()
    return found


def test_rows_are_those_of_the_queryset() -> None:
    mine, other = factory.make_submission("A"), factory.make_submission("B")
    where = {"model__name": "A"}
    (row,) = run_prepared(_rows, tuple(where), **where)
    assert row == Submission.objects.filter(pk=mine.pk).values_list(*NAMES).get()
    assert [row[0] for row in run_prepared(_rows, ())] == [mine.pk, other.pk]
    assert run_prepared(_rows, ("model__name",), model__name="nobody") == []


def test_sql_is_written_once_for_each_shape_and_read_each_time() -> None:
    factory.make_submission("A")
    run_prepared(_rows, ("model__slug",), model__slug="x")
    before = len(BUILT)
    with CaptureQueriesContext(connection) as seen:
        run_prepared(_rows, ("model__slug",), model__slug="y")
        run_prepared(_rows, ("model__slug",), model__slug="x")
    assert len(BUILT) == before
    assert len(seen.captured_queries) == 2
    with pytest.raises(KeyError):
        run_prepared(_rows, ("model__slug",))


@pytest.mark.parametrize("kind", ["Run", "LeaderboardRow", "ProblemAggregate"])
def test_values_are_those_of_the_queryset(kind: str, run: Run) -> None:
    """Of every kind that a column has: moments, keys, JSON, bytes, numbers, nothing."""
    factory.finish(run, factory.make_report(run, speedup=1.25))
    found = run_prepared(_every_column, kind)
    assert found == list(_every_column(kind))
    assert found
    assert any(isinstance(field, JSONField) for field in Run._meta.fields)
