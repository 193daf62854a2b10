"""Counts how many runs wait, go on and have ended, by class of hardware."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

from django.db.models import (
    Case,
    DurationField,
    F,
    IntegerField,
    OuterRef,
    QuerySet,
    Subquery,
    When,
)

from leaderboard.models import Hardware, Run, Visibility, WorkerHost
from leaderboard.models.abilities import in_words

# A day in which more ended is not counted to its end: that would read an index of all of them.
MOST_COUNTED = 10_000
LAST_RUNS = 20
# Not a plain condition, for which a database may begin with all submissions that are not.
IS_PRIVATE = Case(When(kernel__submission__visibility=Visibility.PRIVATE, then=True), default=False)


def of_each(*, with_private: bool = False) -> QuerySet[Run]:
    """Return the runs of a Hardware in a query around it: for readers without private ones, which
    a count would give away."""
    runs = Run.objects.order_by().filter(hardware=OuterRef("pk"))
    return runs if with_private else runs.exclude(IS_PRIVATE)


def counted(runs: QuerySet[Run], most: int | None = None) -> Subquery:
    """Return how many of them there are for each Hardware, counted no further than `most`."""
    return Subquery(
        runs.values("hardware")[:most],
        output_field=IntegerField(),
        template="(SELECT COUNT(*) FROM (%(subquery)s) AS counted)",
    )


def usual_time() -> Subquery:
    """Return what judging took, on average over the last runs of each Hardware that ended in a
    verdict here."""
    judged = Run.objects.filter(hardware=OuterRef("pk"), status="done", token__isnull=False)
    took = judged.annotate(took=F("finished_at") - F("started_at")).order_by("-finished_at")
    return Subquery(
        took.values("took")[:LAST_RUNS],
        output_field=DurationField(),
        template='(SELECT AVG("took") FROM (%(subquery)s) AS ended)',
    )


def expected_wait_s(ahead: int, hosts: int, took: timedelta | None) -> int | None:
    """Return how many seconds a run waits behind so many; None where no host serves or
    nothing was judged there yet."""
    return round(ahead * took.total_seconds() / hosts) if hosts and took else None


class Queue(NamedTuple):
    """Holds what a submitter asks of a class of hardware: how many runs are ahead, how many hosts
    judge there now, what they offer, and how long a new run waits, if that is known."""

    slug: str
    title: str
    device: str
    ahead: int
    hosts: int
    offers: str
    expected_wait_s: int | None


def queues_now() -> list[Queue]:
    """Return every class of hardware as it stands, in two queries."""
    serving: dict[str, list[frozenset[str]]] = {}
    for queue, told in WorkerHost.objects.serving().values_list("queue", "abilities"):
        serving.setdefault(queue, []).append(frozenset(told or ()))
    found = by_hardware().annotate(took=usual_time()).order_by("pk")
    rows = found.values_list("pk", "title", "device", "queued", "running", "took")
    made = []
    for slug, title, device, queued, running, took in rows:
        hosts = serving.get(slug, [])
        offers, ahead = in_words(frozenset().union(*hosts)), queued + running
        waits_s = expected_wait_s(ahead, len(hosts), took)
        made.append(Queue(slug, title, device, ahead, len(hosts), offers, waits_s))
    return made


def by_hardware(*, with_private: bool = False) -> QuerySet[Hardware]:
    """Return the classes with `queued`, `running` and since when the `oldest` waits."""
    runs = of_each(with_private=with_private)
    waiting = runs.filter(status="queued")
    return Hardware.objects.annotate(
        queued=counted(waiting),
        running=counted(runs.filter(status="running")),
        oldest=Subquery(waiting.order_by("created_at").values("created_at")[:1]),
    )
