"""Counts what all processes of the site count together, in a table."""

from __future__ import annotations

from typing import Any

from django.core.cache.backends.db import DatabaseCache
from django.db import router, transaction


class SharedCache(DatabaseCache):
    """Raises where the database is locked or down. Django's own cache says then that nothing was
    stored, which is what a login that was tried too often looks like."""

    def _base_set(self, *given: Any, **named: Any) -> bool:
        with transaction.atomic(using=router.db_for_write(self.cache_model_class)):
            stored: bool = super()._base_set(*given, **named)  # type: ignore[misc]
        return stored
