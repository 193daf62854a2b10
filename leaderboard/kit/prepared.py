"""Queries whose SQL is written once in a process.

For a query of a page Django needs several times as long to write the SQL as the database to answer
it. A prepared query is a function at the top of a module that makes the queryset, with `Given` in
place of values:

    def _of_model(by_date: bool) -> QuerySet[Submission]: ...filter(model=Given("model"))...

    ask(_of_model, True, model=17)

The function runs once for each choice of positional arguments: whatever changes the SQL must be
among them.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import orjson
from django.db import connection, models
from django.db.backends.utils import CursorWrapper
from django.db.models import Expression, Field, JSONField, QuerySet
from django.db.models.fields.json import KeyTransform
from django.db.models.query import ModelIterable, ValuesListIterable, get_related_populators
from django.db.models.sql.subqueries import UpdateQuery

Found = TypeVar("Found")
Convert = Callable[[Any], Any]
Build = Callable[..., QuerySet[Any, Found]]
# Of these, databases take values as they are.
PLAIN = (
    *(models.BooleanField, models.IntegerField, models.FloatField),
    *(models.CharField, models.TextField, models.BinaryField),
)


class Given(Expression):
    """Stands for the value of that name. With `field` it is passed as that field would pass it:
    times, UUIDs and JSON need that."""

    def __init__(self, name: str, field: Field[Any, Any] | None = None) -> None:
        super().__init__(output_field=field)
        self.name, self.convert = name, field and _writer(field)

    def as_sql(self, *_: Any, **__: Any) -> tuple[str, list[Any]]:  # type: ignore[override]
        return "%s", [self]

    def passed(self, values: Mapping[str, Any]) -> Any:
        value = values[self.name]
        return self.convert(value) if self.convert else value


def _writer(field: Field[Any, Any]) -> Convert | None:
    if isinstance(field, PLAIN):
        return None
    if isinstance(field, JSONField):
        return lambda value: None if value is None else orjson.dumps(value).decode()
    return lambda value: field.get_db_prep_save(value, connection)


@dataclass(frozen=True, kw_only=True)
class _Statement:
    sql: str
    parameters: Sequence[Any]
    # By the place in a row: what makes values of what the database has there.
    converters: Mapping[int, Sequence[Convert]]
    made_of: Convert
    is_binary: bool


def given(names: Iterable[str]) -> dict[str, Given]:
    """Keywords of a filter whose values have the names of their columns."""
    return {name: Given(name) for name in names}


def ask(build: Build[Found], *shape: Hashable, **values: object) -> list[Found]:
    """Raises KeyError where a value is missing."""
    return send(build, *shape, **values)()


def send(build: Build[Found], *shape: Hashable, **values: object) -> Callable[[], list[Found]]:
    """As `ask`; what comes back waits for the answer, once. In `pipelined` others may be sent
    meanwhile."""
    statement = _statement(build, shape)
    cursor = connection.cursor()
    if statement.is_binary:
        cursor.cursor.format = type(cursor.format).BINARY
    cursor.execute(statement.sql, _passed(statement.parameters, values))
    return functools.partial(_answer, statement, cursor)


def _answer(statement: _Statement, cursor: CursorWrapper) -> list[Any]:
    with cursor:
        found = cursor.fetchall()
    columns: list[Iterable[Any]] = list(zip(*found, strict=True))
    for place, converters in statement.converters.items() if found else ():
        for convert in converters:
            columns[place] = map(convert, columns[place])
    return list(map(statement.made_of, zip(*columns, strict=True)))


def change(
    build: Build[Any], *shape: Hashable, columns: tuple[str, ...], **values: object
) -> Callable[[], int]:
    """Sets columns to the values of their names. What comes back says of how many rows; in
    `pipelined` it knows after a later answer, or the end."""
    sql, parameters = _update(build, shape, columns)
    with connection.cursor() as cursor:
        cursor.execute(sql, _passed(parameters, values))
    return lambda: int(cursor.rowcount)


@contextlib.contextmanager
def pipelined() -> Iterator[None]:
    """In here PostgreSQL works at what was sent while we go on, up to the next answer that is
    waited for. What it refuses may be raised as late as at the end."""
    if connection.vendor != "postgresql":
        yield
        return
    connection.ensure_connection()
    driver: Any = connection.connection
    with connection.wrap_database_errors, driver.pipeline():
        yield


def _passed(parameters: Sequence[Any], values: Mapping[str, object]) -> list[Any]:
    return [one.passed(values) if isinstance(one, Given) else one for one in parameters]


@functools.cache
def _update(
    build: Build[Any], shape: tuple[Hashable, ...], columns: tuple[str, ...]
) -> tuple[str, Sequence[Any]]:
    """As QuerySet.update writes it."""
    queryset = build(*shape)
    fields = {name: queryset.model._meta.get_field(name) for name in columns}
    query: Any = queryset.query.chain(UpdateQuery)
    query.add_update_values({name: Given(name, field) for name, field in fields.items()})
    sql, parameters = query.get_compiler(connection=connection).as_sql()
    return sql, parameters


@functools.cache
def _statement(build: Build[Any], shape: tuple[Hashable, ...]) -> _Statement:
    queryset = build(*shape)
    compiler: Any = queryset.query.get_compiler(connection=connection)
    sql, parameters = compiler.as_sql()
    selected = [one[0] for one in compiler.select]
    converters = {
        place: [_reader(convert, expression) for convert in functions]
        for place, (functions, expression) in compiler.get_converters(selected).items()
    }
    made_of = _MAKERS[queryset._iterable_class](compiler)
    return _Statement(
        sql=sql,
        parameters=parameters,
        converters=converters,
        made_of=made_of,
        is_binary=_is_binary([one.output_field for one in selected]),
    )


def _is_binary(fields: Sequence[Field[Any, Any]]) -> bool:
    """Whether an answer holds bytes that PostgreSQL would otherwise write as text, twice as long;
    it must hold nothing else that is read differently then."""
    is_possible = connection.vendor == "postgresql" and all(isinstance(f, PLAIN) for f in fields)
    return is_possible and any(isinstance(f, models.BinaryField) for f in fields)


def _reader(convert: Callable[..., Any], expression: Expression) -> Convert:
    """orjson takes a third of the time of Django's own for JSON."""
    is_json = isinstance(expression.output_field, JSONField)
    if is_json and not isinstance(expression, KeyTransform):
        return lambda value: None if value is None else orjson.loads(value)
    return lambda value: convert(value, expression, connection)


def _instances(compiler: Any) -> Convert:
    """As ModelIterable makes them."""
    known = compiler.klass_info
    model, own = known["model"], known["select_fields"]
    first, end = own[0], own[-1] + 1
    names = [expression.target.attname for expression, *_ in compiler.select[first:end]]
    populators: Callable[..., list[Any]] = get_related_populators
    related = populators(known, compiler.select, connection.alias)
    annotated = compiler.annotation_col_map or {}

    def made_of(row: Sequence[Any]) -> Any:
        made = model.from_db(connection.alias, names, row[first:end])
        for populator in related:
            populator.populate(row, made)
        for name, place in annotated.items():
            setattr(made, name, row[place])
        return made

    return made_of


_MAKERS: dict[Any, Callable[[Any], Convert]] = {
    ModelIterable: _instances,
    ValuesListIterable: lambda _: tuple,
}
