"""Runs the Celery application of a judging host, and speaks to the site. Imported by nothing of the
evaluator.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from celery import Celery
from celery.signals import (
    worker_init,
    worker_process_init,
    worker_process_shutdown,
    worker_ready,
    worker_shutting_down,
)

from evaluator.evaluate import Cancelled, evaluate
from evaluator.host.gpus import offered
from evaluator.host.parent_death import die_with_parent
from evaluator.judge.prefork import PreforkServer
from evaluator.messages.doorbell import TASK
from evaluator.messages.faults import DirtyHost, EvaluatorError
from evaluator.messages.report import JUDGE_VERSION, UNCLEAN_HOST, Isolation, Progress, Report
from evaluator.sandbox import multicast_guard
from evaluator.sandbox.hardware import environment, host_versions
from evaluator.sandbox.sandbox import REPOSITORY
from evaluator.sandbox.selfcheck import check_host
from evaluator.sandbox.support import LACKS, LACKS_SEPARATOR, abilities
from evaluator.worker import brokers
from evaluator.worker.site import SERVING, Lease, LeaseLost, Site, Welcome

# A message only names a run, and the site decides by a claim whether this host may judge it.
# `celery -A evaluator.worker worker -Q <queue> -c 1` starts it; PKB_SITE_URL and PKB_WORKER_TOKEN
# are required, the broker is CELERY_BROKER_URL or the folders below PKB_STATE_DIR.
logger = logging.getLogger(__name__)

DEFAULT_QUEUE = "cpu"
PROGRESS_EVERY_S = 1.0
HELLO_AGAIN_S = 10.0
MEASURED = "PKB_MEASURED_ISOLATION"
PREFORK = PreforkServer(warm=True)


def broker_settings() -> dict[str, Any]:
    """Return Celery's broker: CELERY_BROKER_URL, or folders that need no server (one machine
    only)."""
    url = os.environ.get("CELERY_BROKER_URL", "filesystem://")
    if url != "filesystem://":
        return {"broker_url": url}
    state = Path(os.environ.get("PKB_STATE_DIR", REPOSITORY / ".local"))
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    queue, control = state / "broker" / "queue", state / "broker" / "control"
    for folder in (queue, control):
        folder.mkdir(parents=True, exist_ok=True)
    options = {
        "data_folder_in": str(queue),
        "data_folder_out": str(queue),
        "control_folder": str(control),
        "polling_interval": 0.2,
    }
    return {"broker_url": url, "broker_transport_options": options}


brokers.use()
app = Celery("evaluator")
app.conf.update(
    broker_settings(),
    task_default_queue=os.environ.get("PKB_QUEUE", DEFAULT_QUEUE),
    task_acks_late=False,
    task_ignore_result=True,
    worker_prefetch_multiplier=1,
    worker_concurrency=1,
    worker_send_task_events=False,
    # Whoever has the broker's password of one host could stop the workers of all.
    worker_enable_remote_control=False,
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
    task_serializer="json",
    accept_content=["json"],
)


def site_from_environment() -> Site:
    """Raises SystemExit naming the setting that is missing."""
    try:
        return Site(url=os.environ["PKB_SITE_URL"], token=os.environ["PKB_WORKER_TOKEN"])
    except KeyError as missing:
        raise SystemExit(f"the worker needs the setting {missing.args[0]}") from None


@app.task(name=TASK)  # type: ignore[untyped-decorator]
def evaluate_run(run_id: str) -> None:
    """Claim the run and judge it; quietly nothing where somebody else has it."""
    site = site_from_environment()
    own = {"isolation": host_isolation(), "judge_version": JUDGE_VERSION}
    lease = site.claim(run_id, {"host": environment().host, **own})
    if lease is not None:
        judge_leased(site, lease)


def judge_leased(site: Site, lease: Lease) -> None:
    """Judge under a lease: heartbeats on the way, then exactly one of finish, fail or silence."""
    try:
        report = evaluate(lease.job, _Heartbeat(site, lease), PREFORK)
        site.finish(lease, _as_measured(report))
        if UNCLEAN_HOST in report.flags:
            _end_worker()
    except LeaseLost as why:
        logger.warning("run %s is not this host's now: %s", lease.run_id, why)
    except Cancelled:
        _give_back(site, lease, "cancelled on request")
    except DirtyHost as error:
        logger.exception("this host judges no more")
        _give_back(site, lease, str(error))
        _end_worker()
    except EvaluatorError as error:
        logger.exception("run %s failed for no fault of the kernel", lease.run_id)
        _give_back(site, lease, str(error))


def _as_measured(report: Report) -> Report:
    """Return the report with no higher level than probes found at the start: a sandbox that starts
    may not hold."""
    measured = host_isolation()
    return report if measured.at_least(report.isolation) else replace(report, isolation=measured)


def _give_back(site: Site, lease: Lease, error: str) -> None:
    """Say that the run failed; a site that refused its report has taken it back already."""
    with contextlib.suppress(LeaseLost):
        site.fail(lease, error)


def _end_worker() -> None:
    """End the worker that this pool process belongs to; its next start checks the host again."""
    os.kill(os.getppid(), signal.SIGTERM)


class _Heartbeat:
    """Tells the site where a run is: on every change, at most once a second, and in time."""

    def __init__(self, site: Site, lease: Lease) -> None:
        self._site, self._lease = site, lease
        self._sent: Progress | None = None
        self._sent_at = time.monotonic()

    def __call__(self, progress: Progress) -> bool:
        silent_s = time.monotonic() - self._sent_at
        is_news = progress != self._sent and (silent_s > PROGRESS_EVERY_S or self._sent is None)
        if not is_news and silent_s < self._lease.heartbeat_s:
            return False
        self._sent, self._sent_at = progress, time.monotonic()
        try:
            return self._site.heartbeat(self._lease, progress)
        except EvaluatorError as error:
            logger.warning("heartbeat of run %s: %s", self._lease.run_id, error)
            return False


def host_isolation() -> Isolation:
    """Return the level measured when the worker started; its pool processes inherit it."""
    return Isolation(os.environ.get(MEASURED, Isolation.NONE))


@worker_init.connect  # type: ignore[untyped-decorator]
def measure_isolation(**_: object) -> None:
    """Raises SystemExit where the host stays below PKB_MIN_ISOLATION (default `bwrap`), or where
    somebody else is on its GPUs."""
    site_from_environment()
    wanted = Isolation(os.environ.get("PKB_MIN_ISOLATION", Isolation.BWRAP))
    try:
        found = check_host()
    except EvaluatorError as error:
        raise SystemExit(f"this host cannot judge: {error}") from None
    if not found.isolation.at_least(wanted):
        reasons = "; ".join(found.why_not_higher)
        raise SystemExit(f"isolation is {found.isolation}, {wanted} is required: {reasons}")
    os.environ[MEASURED] = found.isolation
    os.environ[LACKS] = LACKS_SEPARATOR.join(found.lacks)
    if found.gpu_probes and not multicast_guard.is_available():
        logger.warning(multicast_guard.UNGUARDED)


@worker_init.connect  # type: ignore[untyped-decorator]
def introduce(**_: object) -> None:
    """Say hello before the first message comes: who has not may claim nothing."""
    _hello(site_from_environment(), _own_facts())


@worker_ready.connect  # type: ignore[untyped-decorator]
def announce(**_: object) -> None:
    """Say hello to the site from now on, in a thread."""
    threading.Thread(target=_say_hello, args=[site_from_environment()], daemon=True).start()


@worker_shutting_down.connect  # type: ignore[untyped-decorator]
def say_that_it_ends(how: str = "", **_: object) -> None:
    """Tell the log what SIGTERM, or SIGINT, does: Celery lets a run end and takes no other."""
    logger.warning("%s shutdown: no run is taken any more", how)


@worker_process_init.connect  # type: ignore[untyped-decorator]
def prepare_pool_process(**_: object) -> None:
    """Tie a pool process to its worker, so that it does not go on judging alone, and make it
    ready."""
    die_with_parent(os.getppid())
    PREFORK.start()


@worker_process_shutdown.connect  # type: ignore[untyped-decorator]
def end_pool_process(**_: object) -> None:
    """End the judge that waits for the next job, so that it removes what it made."""
    PREFORK.close()


def _own_facts() -> dict[str, object]:
    is_cpu = app.conf.task_default_queue.partition("-")[0] == DEFAULT_QUEUE
    host = environment(() if is_cpu else offered())
    return {
        "host": host.host,
        "hardware": host.hardware,
        "queue": app.conf.task_default_queue,
        "isolation": host_isolation(),
        "versions": host_versions(() if is_cpu else offered()),
        "abilities": [] if is_cpu else sorted(abilities()),
        "judge_version": JUDGE_VERSION,
    }


def _hello(site: Site, facts: dict[str, object], before: str = SERVING) -> Welcome:
    """Say hello, and tell the log where staff have changed this host's state since `before`."""
    try:
        welcome = site.hello(facts)
    except EvaluatorError as error:
        logger.warning("hello: %s", error)
        return Welcome(again_s=HELLO_AGAIN_S, state=before)
    if welcome.state != before:
        logger.warning("the site says: this host is %s", welcome.state)
    return welcome


def _say_hello(site: Site) -> None:
    facts, state = _own_facts(), SERVING
    while True:
        welcome = _hello(site, facts, state)
        state = welcome.state
        time.sleep(welcome.again_s)
