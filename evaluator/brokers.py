"""Reads messages of brokers, past those that are none: kombu's own channels would end the worker.

A file that is read between its creation and its writing is empty, as one is that a full disk left.
Whoever has a host's password can push anything to Redis. The site rings again for what was lost.
"""

from __future__ import annotations

import logging
from queue import Empty
from typing import Any

from kombu.transport import TRANSPORT_ALIASES, filesystem, redis

logger = logging.getLogger(__name__)


class FolderChannel(filesystem.Channel):
    def _get(self, queue: str, timeout: float | None = None) -> dict[str, Any]:
        """Return the next message; raise Empty where there is none, or what was there is none."""
        try:
            found = super()._get(queue)  # type: ignore[no-untyped-call]
        except ValueError:
            found = None
        properties = found.get("properties") if isinstance(found, dict) else None
        if isinstance(properties, dict) and "delivery_tag" in properties:
            return dict(found)
        logger.warning("a message in the folder of %s cannot be read; it is passed over", queue)
        raise Empty


class FolderTransport(filesystem.Transport):
    Channel = FolderChannel


class RedisChannel(redis.Channel):
    def _brpop_read(self, **options: Any) -> Any:
        """Deliver the next message; raise Empty where there is none, or what was there is none."""
        try:
            return super()._brpop_read(**options)  # type: ignore[no-untyped-call]
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            logger.warning("a message of the broker cannot be read; it is passed over: %r", error)
            raise Empty from None


class RedisTransport(redis.Transport):
    Channel = RedisChannel


def use() -> None:
    """Let `filesystem://` and `redis://` mean these from now on, in this process."""
    TRANSPORT_ALIASES["filesystem"] = f"{__name__}:{FolderTransport.__name__}"
    for scheme in ("redis", "rediss"):
        TRANSPORT_ALIASES[scheme] = f"{__name__}:{RedisTransport.__name__}"
