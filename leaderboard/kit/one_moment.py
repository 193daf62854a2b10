"""Opens transactions that only read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from django.db import connection, transaction


@contextlib.contextmanager
def at_one_moment() -> Iterator[None]:
    """Open a transaction that sees the same rows from its first query to its last.

    Others can write meanwhile: on SQLite it does not begin with the write lock, as the site's other
    transactions do. A transaction that is open already is used as it is.
    """
    if connection.in_atomic_block:
        yield
    elif connection.vendor == "sqlite":
        with _deferred(), transaction.atomic():
            yield
    else:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            yield


@contextlib.contextmanager
def _deferred() -> Iterator[None]:
    connection.ensure_connection()  # sets the mode
    own: Any = connection
    usual, own.transaction_mode = own.transaction_mode, "DEFERRED"
    try:
        yield
    finally:
        own.transaction_mode = usual
