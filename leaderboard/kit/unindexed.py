"""Keeps a database from finding few rows by an index that holds many more. Used where it lacks
statistics, or is asked for the first rows in the order of such an index."""

from __future__ import annotations

from django.db.models.functions import Coalesce


def unindexed(column: str) -> Coalesce:
    """Return what the column holds, as an expression that no index does."""
    return Coalesce(column, column)
