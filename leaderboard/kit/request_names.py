"""Knows which request this thread answers, so that each line of the log can say it."""

from __future__ import annotations

import logging
import time
from contextvars import ContextVar

CURRENT: ContextVar[str] = ContextVar("CURRENT", default="-")
BETWEEN_MAILS_S = 60.0


class WithRequestId(logging.Filter):
    """Adds `request_id` to each record: of the request that is being answered, else `-`."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = CURRENT.get()
        return True


class OnceAMinute(logging.Filter):
    """Passes one record a minute: a database that is down is one fault, for however many."""

    _passed_at = -BETWEEN_MAILS_S

    def filter(self, record: logging.LogRecord) -> bool:
        now = time.monotonic()
        if now - self._passed_at < BETWEEN_MAILS_S:
            return False
        self._passed_at = now
        return True
