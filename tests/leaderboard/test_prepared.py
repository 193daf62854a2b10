"""Prepared queries find what the same querysets find, and are written once."""

from __future__ import annotations

import math
import struct
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import Case, F, Q, QuerySet, When
from django.test.utils import CaptureQueriesContext

from evaluator import Verdict
from leaderboard.kit.prepared import Given, ask, change, given, pipelined, send
from leaderboard.models import Kernel, Problem, Run, Standing, Submission
from tests.leaderboard import factory

pytestmark = pytest.mark.django_db
NAMES = ("pk", "model__name", "model__is_baseline", "created_at", "cost_usd")
BUILT: list[object] = []


def _rows(where: tuple[str, ...]) -> QuerySet[Submission, tuple[Any, ...]]:
    BUILT.append(where)
    return Submission.objects.filter(**given(where)).order_by("pk").values_list(*NAMES)


def _kernels() -> QuerySet[Kernel]:
    found = Kernel.objects.filter(submission__model__name=Given("model")).order_by("pk")
    found = found.select_related("submission__model", "problem").defer("problem__payload")
    return found.annotate(vendor=F("submission__model__vendor"))


def _run_of() -> QuerySet[Run, tuple[Any, ...]]:
    return Run.objects.filter(pk=Given("run", Run._meta.pk)).values_list("pk", "mechanisms")


def _with_bytes() -> QuerySet[Standing, tuple[Any, ...]]:
    best, is_one = F("submission__summaries__best_speedup"), Q(submission__pk__gt=0)
    found = Standing.objects.annotate(best=best, is_known=Case(When(is_one, then=True)))
    names = ("cells", "speedups", "best", "made", "is_known", "submission__step_budget")
    return found.order_by("pk").values_list(*names)


def test_rows_are_those_of_the_queryset() -> None:
    mine, other = factory.make_submission("A"), factory.make_submission("B")
    where = {"model__name": "A"}
    (row,) = ask(_rows, tuple(where), **where)
    assert row == Submission.objects.filter(pk=mine.pk).values_list(*NAMES).get()
    assert [row[0] for row in ask(_rows, ())] == [mine.pk, other.pk]
    assert ask(_rows, ("model__name",), model__name="nobody") == []


def test_sql_is_written_once_for_each_shape_and_read_each_time() -> None:
    factory.make_submission("A")
    ask(_rows, ("model__slug",), model__slug="x")
    before = len(BUILT)
    with CaptureQueriesContext(connection) as seen:
        ask(_rows, ("model__slug",), model__slug="y")
        ask(_rows, ("model__slug",), model__slug="x")
    assert len(BUILT) == before
    assert len(seen.captured_queries) == 2
    with pytest.raises(KeyError):
        ask(_rows, ("model__slug",))


def test_instances_have_what_was_selected_with_them(problem: Problem) -> None:
    kernel = factory.make_kernel(factory.make_submission("A"), problem)
    (found,) = ask(_kernels, model="A")
    with CaptureQueriesContext(connection) as seen:
        assert found == kernel
        assert (found.submission.model.name, found.problem.number) == ("A", problem.number)
        assert vars(found)["vendor"] == kernel.submission.model.vendor
    assert not seen.captured_queries
    assert found.problem.get_deferred_fields() == {"payload"}


def test_values_are_passed_as_their_field_passes_them(run: Run) -> None:
    assert ask(_run_of, run=run.pk) == [(run.pk, run.mechanisms)]


def _run() -> QuerySet[Run]:
    return Run.objects.filter(pk=Given("pk", Run._meta.pk))


def test_a_change_sets_columns_as_their_fields_store_them(run: Run) -> None:
    other = factory.make_run(run.kernel)
    values: dict[str, Any] = {
        "created_at": run.created_at - timedelta(days=1),
        "mechanisms": ["tma"],
        "ranks": [0, 3],
    }
    for environment in ({"gpu": None, "µs": 0.1}, None):
        values["environment"] = environment
        change(_run, columns=tuple(values), pk=run.pk, **values)
        run.refresh_from_db()
        assert {name: getattr(run, name) for name in values} == values
    assert Run.objects.filter(environment__isnull=True, pk=run.pk).exists()
    assert Run.objects.get(pk=other.pk).ranks == []


def test_answers_may_be_had_after_other_questions_and_changes(run: Run) -> None:
    with pipelined():
        first, second = send(_run_of, run=run.pk), send(_run_of, run=UUID(int=0))
        change(_run, columns=("mechanisms",), pk=run.pk, mechanisms=["tma"])
        third = send(_run_of, run=run.pk)
        assert second() == []
        assert first() == [(run.pk, [])]
        assert third() == [(run.pk, ["tma"])]


def test_bytes_are_read_as_such_beside_any_value(run: Run) -> None:
    """PostgreSQL answers in another form then."""
    factory.finish(run, factory.make_report(run, speedup=1.25))
    factory.make_judged(run.kernel.submission, run.kernel.problem, Verdict.TIMEOUT)
    found = ask(_with_bytes)
    assert found == list(_with_bytes())
    assert [type(value) for value in found[0]] == [str, bytes, float, int, bool, type(None)]
    assert found[0][1:5] == (struct.pack("<3d", 1.25, 1.2, math.nan), 1.25, 2, True)


def test_a_refused_change_is_raised_before_the_transaction_ends(run: Run) -> None:
    """Together with all that was changed beside it."""

    def store() -> None:
        with pipelined():
            change(_run, columns=("mechanisms",), pk=run.pk, mechanisms=["tma"])
            change(_run, columns=("tries",), pk=run.pk, tries=99)
        raise AssertionError("stored")

    with pytest.raises(IntegrityError, match="run_tries_bounded"), transaction.atomic():
        store()
    assert Run.objects.get(pk=run.pk).mechanisms == []
