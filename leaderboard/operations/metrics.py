"""Counts requests, and reads from the database what Prometheus asks about queues and verdicts."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.db import Error
from django.db.models import Count
from django.utils import timezone
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    Counter,
    Histogram,
    generate_latest,
    multiprocess,
    values,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from leaderboard.kit import doorbells
from leaderboard.models import RefusedReport, Run, Status, WorkerHost
from leaderboard.operations import backup, readiness
from leaderboard.read_model.queue_counts import by_hardware

CONTENT_TYPE = CONTENT_TYPE_LATEST
REQUESTS = Counter("pkb_http_requests", "Answers by status.", ["status"])
SECONDS = Histogram(
    "pkb_http_request_seconds",
    "From a request to the headers of its answer.",
    buckets=(0.001, 0.005, 0.02, 0.1, 0.5, 2, 10),
)


class FromDatabase(Collector):
    """Reads at each scrape, so every process of the site tells the same."""

    def collect(self) -> Iterator[Metric]:
        up = GaugeMetricFamily("pkb_up", "1 where this is there.", labels=["what"])
        for name, said in readiness.checks().items():
            up.add_metric([name], float(said == readiness.OK))
        yield up
        yield from _unreadable()
        yield from _kept()
        try:
            yield from [*_queues(), *_verdicts(), _given_up()]
        except Error:
            return


def _kept() -> Iterator[Metric]:
    """Tell when the last backup was made, 0 for never, and what is free where the site writes."""
    made_at, backups = backup.last()
    made = GaugeMetricFamily("pkb_backup_timestamp_seconds", "When the last backup was made.")
    made.add_metric([], made_at)
    free = GaugeMetricFamily("pkb_disk_free_bytes", "Free there.", labels=["folder"])
    for name, path in {"state": Path(settings.STATE_DIR), "backups": backups}.items():
        if path and path.is_dir():
            free.add_metric([name], shutil.disk_usage(path).free)
    yield from (made, free)


def _queues() -> Iterator[Metric]:
    hosts = list(WorkerHost.objects.alive().values_list("queue", flat=True))
    labels, columns = ["hardware"], ("slug", "queued", "running", "oldest")
    depth = GaugeMetricFamily("pkb_runs", "Open runs.", labels=["hardware", "status"])
    wait = GaugeMetricFamily("pkb_longest_wait_seconds", "Of the oldest that waits.", labels=labels)
    alive = GaugeMetricFamily("pkb_hosts_alive", "Hosts heard of lately.", labels=labels)
    for row in by_hardware(with_private=True).values(*columns):
        slug, oldest = row["slug"], row["oldest"]
        depth.add_metric([slug, "queued"], row["queued"])
        depth.add_metric([slug, "running"], row["running"])
        waited_s = (timezone.now() - oldest).total_seconds() if oldest else 0.0
        wait.add_metric([slug], waited_s)
        alive.add_metric([slug], hosts.count(slug))
    yield from (depth, wait, alive)


def _unreadable() -> Iterator[Metric]:
    count = doorbells.unreadable()
    if count is not None:
        what = "Messages of the broker that workers could not read, up to 100."
        yield GaugeMetricFamily("pkb_unreadable_messages", what, value=count)


def _verdicts() -> Iterator[Metric]:
    labels = ["verdict"]
    verdicts = CounterMetricFamily("pkb_verdicts", "Runs that ended, by verdict.", labels=labels)
    ended = Run.objects.exclude(verdict=None).order_by().values_list("verdict")
    for verdict, count in ended.annotate(Count("pk")):
        verdicts.add_metric([verdict], count)
    refused = CounterMetricFamily("pkb_refused_reports", "Reports that were not believed.")
    refused.add_metric([], RefusedReport.objects.count())
    yield from (verdicts, refused)


def _given_up() -> Metric:
    """Count by host the runs that it leased last, gave no result of, and that nobody has since."""
    found = GaugeMetricFamily("pkb_runs_given_up", "Leased without a result.", labels=["host"])
    ended = Run.objects.filter(status__in=(Status.QUEUED, Status.FAILED)).exclude(host="")
    for host, count in ended.order_by().values_list("host").annotate(Count("pk")):
        found.add_metric([host], count)
    return found


def exposition() -> bytes:
    """Return the metrics of all processes of this site on this host as Prometheus reads them."""
    stored = generate_latest(_of_database())
    counted = REGISTRY
    # Where docker/gunicorn.conf.py has named a folder for them.
    if values.ValueClass.__name__ == "MmapedValue":
        counted = CollectorRegistry()
        multiprocess.MultiProcessCollector(counted)  # type: ignore[no-untyped-call]
    return stored + generate_latest(counted)


def _of_database() -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(FromDatabase())
    return registry
