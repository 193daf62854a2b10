"""Counts how many runs wait, go on and have ended, by class of hardware, by indexes alone."""

from __future__ import annotations

from django.db.models import IntegerField, OuterRef, QuerySet, Subquery

from leaderboard.models import Hardware, Run

# A day in which more ended is not counted to its end: that would read an index of all of them.
MOST_COUNTED = 10_000


def of_each() -> QuerySet[Run]:
    """Return the runs of a Hardware in a query around it."""
    return Run.objects.order_by().filter(hardware=OuterRef("pk"))


def counted(runs: QuerySet[Run], most: int | None = None) -> Subquery:
    """Return how many of them there are for each Hardware, counted no further than `most`."""
    return Subquery(
        runs.values("hardware")[:most],
        output_field=IntegerField(),
        template="(SELECT COUNT(*) FROM (%(subquery)s) AS counted)",
    )


def by_hardware() -> QuerySet[Hardware]:
    """Return the classes with `queued`, `running` and since when the `oldest` waits."""
    waiting = of_each().filter(status="queued")
    return Hardware.objects.annotate(
        queued=counted(waiting),
        running=counted(of_each().filter(status="running")),
        oldest=Subquery(waiting.order_by("created_at").values("created_at")[:1]),
    )
