"""Brokers that hold what no site sends: a folder with other files, a Redis with other texts."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from kombu.connection import Connection

from evaluator import worker
from evaluator.messages.doorbell import MOST_UNREADABLE, TASK, UNREADABLE
from evaluator.worker.brokers import NoDoorbell, doorbell
from tooling import servers

FILESYSTEM = "filesystem://"
Message = dict[str, Any]


def message(body: object = ([["run"], {}, {}]), **changes: Any) -> Message:
    """What Celery sends for a site, or with these changes in its headers and properties."""
    headers = {"task": TASK, "id": "one", "lang": "py", **changes.pop("headers", {})}
    info = {"exchange": "", "routing_key": "cpu"}
    properties = {"delivery_tag": "two", "delivery_info": info, "body_encoding": "base64"}
    return {
        "body": base64.b64encode(json.dumps(body).encode()).decode(),
        "content-type": "application/json",
        "content-encoding": "utf-8",
        "headers": headers,
        "properties": {**properties, **changes.pop("properties", {})},
        **changes,
    }


OTHERS: list[Message] = [
    *(message(headers={"task": task}) for task in ("other", 5, ["a"], None)),
    *(message(headers={"id": one}) for one in (None, [1], "x" * 101)),
    *(message(properties={"delivery_tag": tag}) for tag in (None, [1], 7)),
    *(
        message(body)
        for body in ("run", {"a": 1}, [["run", 2], {}], [[7], {}, {}], [["x" * 101], {}, {}])
    ),
    *({**message(), name: None} for name in ("body", "headers", "properties")),
    {**message(), "body": "%%%"},
]


@pytest.mark.parametrize("other", OTHERS)
def test_a_message_that_no_site_sends_is_no_doorbell(other: Message) -> None:
    with pytest.raises(NoDoorbell):
        doorbell(other)


def test_a_doorbell_says_nothing_but_its_run() -> None:
    told = {"timelimit": 5, "eta": "2999-01-01", "expires": 1e300, "chord": 7, "reply_to": "x"}
    odd = {"content-type": "application/x-python-serialize", "content-encoding": "zz"}
    more = message([["run"], {"k": 1}, {"callbacks": 5}], headers=told, properties=told, **odd)
    assert doorbell(more) == doorbell(message())
    assert "2999" not in json.dumps(doorbell(more))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"body": "x"}', '"x"', "[" * 100_000])
def test_a_message_in_a_folder_that_cannot_be_read_is_passed_over(
    tmp_path: Path, text: str
) -> None:
    for name in ("queue", "control"):
        (tmp_path / name).mkdir()
    options = {
        "data_folder_in": str(tmp_path / "queue"),
        "data_folder_out": str(tmp_path / "queue"),
        "control_folder": str(tmp_path / "control"),
    }
    assert worker.app.conf.broker_url  # the worker's module is what sets the transport
    with Connection(FILESYSTEM, transport_options=options) as connection:  # type: ignore[no-untyped-call]
        channel = connection.channel()
        (tmp_path / "queue" / "0_first.cpu.msg").write_text(text)
        channel._put("cpu", message())
        with pytest.raises(Empty):
            channel._get("cpu")
        assert channel._get("cpu") == doorbell(message())


@pytest.mark.skipif(not shutil.which("redis-server"), reason="apt-get install redis-server")
def test_a_message_in_redis_that_cannot_be_read_is_passed_over_and_kept() -> None:
    redis = pytest.importorskip("redis")
    assert worker.app.conf.broker_url
    texts = [b"garbage", b"\xff\xfe", b"[]", b"null", b"[" * 100_000, b"x" * 3_000_000]
    texts += [json.dumps(other).encode() for other in OTHERS]
    with servers.redis() as url:
        client = redis.from_url(url)
        client.rpush(UNREADABLE, *["old"] * MOST_UNREADABLE)
        client.lpush("cpu", *texts)
        client.lpush("cpu", json.dumps(message()))
        with Connection(url) as connection:  # type: ignore[no-untyped-call]
            got = connection.SimpleQueue("cpu").get(timeout=20)
        assert got.payload == [["run"], {}, {}]
        kept = client.lrange(UNREADABLE, 0, -1)
        assert len(kept) == MOST_UNREADABLE
        assert kept.count(b"old") == MOST_UNREADABLE - len(texts)
        assert max(map(len, kept)) <= 1000
