"""How many runs wait and go on, by class of hardware; indexes tell, however many have ended."""

from __future__ import annotations

from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from leaderboard.models import Hardware, Run


def of_each() -> QuerySet[Run]:
    """Runs of a Hardware in a query around it."""
    return Run.objects.order_by().filter(hardware=OuterRef("pk"))


def counted(runs: QuerySet[Run]) -> Coalesce:
    """How many of them, for each Hardware."""
    return Coalesce(Subquery(runs.values("hardware").annotate(n=Count("*")).values("n")), 0)


def by_hardware() -> QuerySet[Hardware]:
    """With `queued`, `running` and since when the `oldest` waits."""
    waiting = of_each().filter(status="queued")
    return Hardware.objects.annotate(
        queued=counted(waiting),
        running=counted(of_each().filter(status="running")),
        oldest=Subquery(waiting.order_by("created_at").values("created_at")[:1]),
    )
