"""Tells a worker of a run's hardware class that there is something to lease.

The run's row is the truth, so a message that is lost, doubled or never sent costs a sweep interval.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

from celery import Celery
from django.conf import settings
from kombu.exceptions import KombuError

from evaluator.messages.doorbell import TASK, UNREADABLE

# A run, and the queue of its class of hardware.
Bell = tuple[UUID, str]
log = logging.getLogger(__name__)


def transport_options(url: str, folder: Path) -> dict[str, object]:
    """Return options of the broker; the embedded one keeps its messages in folders, made here."""
    if not url.startswith("filesystem:"):
        # One attempt: a broker that refuses would be asked for 2 s, for every message.
        return {"socket_connect_timeout": 2, "socket_timeout": 10, "max_retries": 0}
    queue, control = folder / "queue", folder / "control"
    for part in (queue, control):
        part.mkdir(parents=True, exist_ok=True)
    return {
        "data_folder_in": str(queue),
        "data_folder_out": str(queue),
        "control_folder": str(control),
        "polling_interval": 0.2,
    }


def make_app() -> Celery:
    url = settings.CELERY_BROKER_URL
    app = Celery("leaderboard", broker=url, set_as_current=False)
    app.conf.update(
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        broker_connection_timeout=2,
        broker_transport_options=transport_options(url, settings.CELERY_BROKER_FOLDER),
    )
    return app


app = make_app()
_BESIDE = ThreadPoolExecutor(max_workers=1, thread_name_prefix="doorbell")


def is_reachable() -> bool:
    """Return whether the broker takes a connection."""
    try:
        with app.connection_for_write() as connection:
            connection.ensure_connection(max_retries=0, timeout=2)
    except (KombuError, OSError):
        return False
    return True


def unreadable() -> int | None:
    """Return the number of messages that workers could not read, up to MOST_UNREADABLE; None if the
    broker does not say."""
    with app.connection_for_read() as connection:
        try:
            connection.ensure_connection(max_retries=0, timeout=2)
            client = getattr(connection.default_channel, "client", None)  # of Redis alone
            return int(client.llen(UNREADABLE)) if client else 0
        except (KombuError, OSError, *connection.connection_errors, *connection.channel_errors):
            return None


def ring(bells: Sequence[Bell]) -> int:
    """Send a message for each run; return for how many the broker took one. After the first that it
    refuses no other is tried: the sweep sends again."""
    for sent, (run_id, queue) in enumerate(bells):
        try:
            app.send_task(TASK, args=[str(run_id)], queue=queue, retry=False)
        except Exception:
            log.exception("the broker took no message for run %s", run_id)
            return sent
    return len(bells)


def ring_later(bells: Sequence[Bell]) -> None:
    """Send them beside the caller, who need not wait for a broker; the process ends after them."""
    _BESIDE.submit(ring, bells)
