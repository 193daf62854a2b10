"""Reads from brokers what a site sends, and nothing else.

Whoever has a host's password can push anything to Redis. Celery ends at some of it, or waits for
ever for what it took and could not start. A message that is passed over is logged, and of Redis
kept: the site counts those in its metrics. The site rings again for runs that wait.
"""

from __future__ import annotations

import base64
import json
import logging
from queue import Empty
from typing import Any

from kombu.transport import TRANSPORT_ALIASES, filesystem, redis

from evaluator.messages.doorbell import MOST_UNREADABLE, TASK, UNREADABLE

logger = logging.getLogger(__name__)
LONGEST = 100  # of a name or a run's number
SHOWN = 1000  # characters of what cannot be read
BROKEN = (ValueError, TypeError, KeyError, AttributeError, RecursionError)


class NoDoorbell(ValueError):
    """Reports a message that no site sends."""


def doorbell(found: Any) -> dict[str, Any]:
    """Rebuild a site's message from task, names and run alone. Raises NoDoorbell."""
    try:
        arguments, _, _ = json.loads(base64.b64decode(found["body"]))
        task, task_id = found["headers"]["task"], found["headers"]["id"]
        texts = (*arguments, task_id, found["properties"]["delivery_tag"])
    except BROKEN as error:
        raise NoDoorbell(repr(found)[:SHOWN]) from error
    are_short = all(isinstance(text, str) and 0 < len(text) <= LONGEST for text in texts)
    if task != TASK or not isinstance(arguments, list) or len(texts) != 3 or not are_short:
        raise NoDoorbell(repr(found)[:SHOWN])
    run_id, _, tag = texts
    return {
        "body": base64.b64encode(json.dumps([[run_id], {}, {}]).encode()).decode(),
        "content-type": "application/json",
        "content-encoding": "utf-8",
        "headers": {"task": TASK, "id": task_id, "lang": "py"},
        "properties": {
            "delivery_tag": tag,
            "delivery_info": {"exchange": "", "routing_key": ""},
            "body_encoding": "base64",
        },
    }


class FolderChannel(filesystem.Channel):
    def _get(self, queue: str, timeout: float | None = None) -> dict[str, Any]:
        """Return the next message; raise Empty where there is none, or what was there is none. A
        file that is read between its creation and its writing is empty."""
        try:
            return doorbell(super()._get(queue))  # type: ignore[no-untyped-call]
        except BROKEN:
            logger.warning("a message in the folder of %s cannot be read; it is passed over", queue)
            raise Empty from None


class FolderTransport(filesystem.Transport):
    Channel = FolderChannel


class RedisChannel(redis.Channel):
    def _brpop_read(self, **options: Any) -> Any:
        """Deliver the next message; raise Empty where there is none, or what was there is none."""
        try:
            return super()._brpop_read(**options)  # type: ignore[no-untyped-call]
        except BROKEN as error:
            logger.warning("a message of the broker cannot be read; it is passed over: %r", error)
            self._keep(repr(error)[:SHOWN])
            raise Empty from None

    def _receive_one(self, connection: Any) -> Any:
        """Pass over what is sent to all: workers take no orders, and listen to no other worker."""
        try:
            return super()._receive_one(connection)  # type: ignore[no-untyped-call]
        except BROKEN:
            raise Empty from None

    def _keep(self, text: str) -> None:
        """Keep what was passed over, as far as Redis takes it."""
        try:
            with self.conn_or_acquire() as client:
                client.lpush(UNREADABLE, text)
                client.ltrim(UNREADABLE, 0, MOST_UNREADABLE - 1)
        except self.connection.connection_errors + self.connection.channel_errors:
            logger.warning("it could not be kept either")


class RedisTransport(redis.Transport):
    Channel = RedisChannel

    def _deliver(self, message: Any, queue: str) -> None:
        super()._deliver(doorbell(message), queue)  # type: ignore[no-untyped-call]


def use() -> None:
    """Let `filesystem://` and `redis://` mean these from now on, in this process."""
    TRANSPORT_ALIASES["filesystem"] = f"{__name__}:{FolderTransport.__name__}"
    for scheme in ("redis", "rediss"):
        TRANSPORT_ALIASES[scheme] = f"{__name__}:{RedisTransport.__name__}"
