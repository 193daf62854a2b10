"""Names what site and workers share of a broker."""

from __future__ import annotations

TASK = "evaluator.evaluate_run"
# The list in Redis of what workers could not read, the newest first.
UNREADABLE = "pkb.unreadable"
MOST_UNREADABLE = 100
