"""Shows how the site judges, and what it is doing now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import F, prefetch_related_objects
from django.http import HttpRequest
from django.utils import timezone

from leaderboard.delivery import cells
from leaderboard.delivery.pages import Crumb, Page, Table, choice, public_page
from leaderboard.kit.json_types import JsonDict, JsonObject
from leaderboard.kit.links import url
from leaderboard.models import HostState, Problem, Publication, Run, Status, WorkerHost
from leaderboard.models.access import heard_lately
from leaderboard.models.runs import FINAL
from leaderboard.read_model.judge_constants import judge_constants
from leaderboard.read_model.queue_counts import (
    MOST_COUNTED,
    by_hardware,
    counted,
    expected_wait_s,
    of_each,
    usual_time,
)
from leaderboard.read_model.run_lines import LINE_READS, RUN_COLUMNS, run_line
from leaderboard.read_model.withholding import WITHHELD
from leaderboard.site_pages.methodology import SETS, TABLES, methodology_context, set_table

NEWEST = 20
QUEUE_COLUMNS = (
    *("hardware_id", "queued", "running", "finished"),
    *("hosts_alive", "last_seen", "longest_wait_s", "expected_wait_s"),
)
HOST_COLUMNS = (
    *("name", "queue", "hardware", "isolation", "judge_version", "seen_at", "alive"),
    *("versions", "state"),
)
RECENT_COLUMNS = (*RUN_COLUMNS, "model", "asked", "declined")


@public_page("table")
def methodology(request: HttpRequest) -> Page:
    problems = list(Problem.objects.values_list("scored", flat=True))
    scored, publication = sum(problems), Publication.objects.first()
    counts = {"problems": len(problems), "scored": scored}
    context = methodology_context(scored)
    facts = {name: context[name] for name in ("judge_version", *SETS)}
    return Page(
        template="methodology.html",
        section="methodology",
        context={
            **counts,
            **context,
            "citation": publication.citation if publication else "",
        },
        data={**counts, **facts, "judging": judge_constants()},
        table=set_table(choice(request, "table", TABLES, TABLES[0])),
        crumbs=(Crumb(text="Leaderboard", url=url("board")), Crumb(text="Methodology")),
    )


@public_page("table", live=True)
def status(request: HttpRequest) -> Page:
    now = timezone.now()
    hosts = host_rows()
    queues = queue_rows(now, hosts)
    recent = [recent_row(run) for run in newest_public_runs()]
    oldest = [queue["oldest"] for queue in queues if queue["oldest"]]
    facts = {
        "now": now,
        "queued": sum(queue["queued"] for queue in queues),
        "running": sum(queue["running"] for queue in queues),
        "finished_today": sum(queue["finished"] for queue in queues),
        "longest_wait_s": (now - min(oldest)).total_seconds() if oldest else None,
        "alive": sum(host["alive"] for host in hosts),
    }
    is_all = all(queue["finished"] < MOST_COUNTED for queue in queues)
    shown = {
        "is_all": is_all,
        "queues": [_drawn(queue) for queue in queues],
        "hosts": hosts,
        "recent": recent,
    }
    tables = status_tables(queues, hosts, recent)
    return Page(
        template="status.html",
        section="status",
        context={**facts, **shown, "alive_s": settings.PKB_HOST_SILENCE_S},
        data={**facts, "queues": queues, "hosts": hosts, "recent": recent},
        table=tables[choice(request, "table", list(tables), "queues")],
        crumbs=(Crumb(text="Leaderboard", url=url("board")), Crumb(text="Status")),
    )


def status_tables(
    queues: Sequence[JsonObject], hosts: Sequence[JsonObject], recent: Sequence[JsonObject]
) -> dict[str, Table]:
    """Return the tables by what `?table=` calls them."""
    shown = [{**host, "versions": _in_one_cell(host["versions"])} for host in hosts]
    return {
        "queues": Table.of(QUEUE_COLUMNS, queues),
        "hosts": Table.of(HOST_COLUMNS, shown),
        "recent": Table.of(RECENT_COLUMNS, recent),
    }


def _in_one_cell(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))


def queue_rows(now: datetime, hosts: Sequence[JsonObject]) -> list[JsonDict]:
    """Return every class of hardware with hosts, or with runs that wait, go on, or ended in the
    last day: `finished`, of which no more than MOST_COUNTED are counted."""
    today = of_each().filter(status__in=FINAL, finished_at__gte=now - timedelta(days=1))
    found = by_hardware().annotate(finished=counted(today, MOST_COUNTED), took=usual_time())
    names = ("queued", "running", "finished", "oldest", "took")
    rows = found.order_by("pk").values(*names, hardware_id=F("pk"))
    told = [_with_hosts(row, hosts, now) for row in rows]
    busy = ("queued", "running", "finished", "last_seen")
    return [row for row in told if any(row[name] for name in busy)]


def _with_hosts(queue: JsonDict, hosts: Sequence[JsonObject], now: datetime) -> JsonDict:
    """Add to a queue its hosts that judge, when any was last heard from, how long its oldest run
    has waited, and how long a run that is handed in now is going to wait."""
    own = [host for host in hosts if host["queue"] == queue["hardware_id"]]
    alive = sum(host["alive"] and host["state"] == HostState.SERVING for host in own)
    oldest, took = queue["oldest"], queue.pop("took")
    return {
        **queue,
        "hosts_alive": alive,
        "last_seen": max((host["seen_at"] for host in own), default=None),
        "longest_wait_s": round((now - oldest).total_seconds()) if oldest else None,
        "expected_wait_s": expected_wait_s(queue["queued"] + queue["running"], alive, took),
    }


def _drawn(queue: JsonDict) -> dict[str, object]:
    counts = [queue[name] for name in ("queued", "running", "hosts_alive")]
    return {
        **{name: queue[name] for name in ("longest_wait_s", "expected_wait_s", "last_seen")},
        **{"name": queue["hardware_id"], "alive": queue["hosts_alive"], "queued": queue["queued"]},
        "cells": cells.joined(map(cells.count_cell, counts)),
    }


def host_rows(queue: str | None = None) -> list[JsonDict]:
    """Return the hosts of one queue, or all."""
    hosts = WorkerHost.objects.all() if queue is None else WorkerHost.objects.filter(queue=queue)
    return [
        {
            "name": host.title or host.host,
            "state": host.state,
            "queue": host.queue,
            "hardware": host.hardware,
            "isolation": host.isolation,
            "judge_version": host.judge_version,
            "seen_at": host.last_seen_at,
            "versions": host.versions,
            "alive": vars(host)["is_alive"],
        }
        for host in hosts.annotate(is_alive=heard_lately())
    ]


def newest_public_runs() -> list[Run]:
    runs = Run.objects.public().with_names()
    newest = list(runs.only(*LINE_READS, "kernel__problem__slug")[:NEWEST])
    prefetch_related_objects([run for run in newest if run.status == Status.QUEUED], "declines")
    return newest


def recent_row(run: Run) -> dict[str, object]:
    return {
        **run_line(run),
        "declined": declined(run),
        "problem_url": run.kernel.problem.get_absolute_url(),
        "submission_url": url("submission", run.kernel.submission_id),
    }


def declined(run: Run) -> str:
    """Say why a run waits, where a host could not judge it; what that quotes of a source that is
    withheld is for its own page."""
    newest = next(iter(run.declines.all()), None) if run.status == Status.QUEUED else None
    if newest and run.kernel.submission.withholds_source:
        return f"{newest.host} declined: {WITHHELD}"
    return str(newest or "")
