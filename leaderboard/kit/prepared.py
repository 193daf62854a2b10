"""Write the SQL of a query once in a process.

For a query of a page Django needs several times as long to write the SQL as the database to answer
it; docs/performance.md says which pages would miss their aim. A prepared query is a function at the
top of a module that makes a `values_list`, with `Param` in place of values:

    def _of_model(by_date: bool) -> QuerySet[Submission, tuple[Any, ...]]:
        return Submission.objects.filter(model=Given("model")).values_list(...)

    ask(_of_model, True, model=17)

The function runs once for each choice of positional arguments: whatever changes the SQL must be
among them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable
from typing import Any

from django.db import connection
from django.db.models import Expression, QuerySet

Build = Callable[..., QuerySet[Any, tuple[Any, ...]]]


class Param(Expression):
    """Stands for the value of that name, passed as it is: a number or a text."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def as_sql(self, *_: Any, **__: Any) -> tuple[str, list[Any]]:  # type: ignore[override]
        return "%s", [self]


def given(names: Iterable[str]) -> dict[str, Param]:
    """Return keywords of a filter whose values have the names of their columns."""
    return {name: Param(name) for name in names}


def run_prepared(build: Build, *shape: Hashable, **values: object) -> list[tuple[Any, ...]]:
    """Return the rows. Raises KeyError where a value is missing."""
    compiler, sql, parameters = _compiled(build, shape)
    passed: Any = [values[one.name] if isinstance(one, Param) else one for one in parameters]
    with connection.cursor() as cursor:
        cursor.execute(sql, passed)
        return list(compiler.results_iter([cursor.fetchall()], tuple_expected=True))


@functools.cache
def _compiled(build: Build, shape: tuple[Hashable, ...]) -> tuple[Any, str, tuple[Any, ...]]:
    compiler = build(*shape).query.get_compiler(connection=connection)
    return compiler, *compiler.as_sql()
