"""Brokers that hold what is no message: a folder with other files, a Redis with other texts."""

from __future__ import annotations

import shutil
from pathlib import Path
from queue import Empty

import pytest
from kombu.connection import Connection

from evaluator import worker
from tooling import servers

FILESYSTEM = "filesystem://"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"body": "x"}', '"x"'])
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
        channel._put("cpu", {"body": "run", "properties": {"delivery_tag": "1"}})
        with pytest.raises(Empty):
            channel._get("cpu")
        assert channel._get("cpu")["body"] == "run"


@pytest.mark.skipif(not shutil.which("redis-server"), reason="apt-get install redis-server")
def test_a_message_in_redis_that_cannot_be_read_is_passed_over() -> None:
    redis = pytest.importorskip("redis")
    assert worker.app.conf.broker_url
    with servers.redis() as url:
        texts = (b"garbage", b"\xff\xfe", b"[]", b"null", b"{}", b'{"body": "x", "properties": 1}')
        redis.from_url(url).lpush("cpu", *texts)
        with Connection(url) as connection:  # type: ignore[no-untyped-call]
            queue = connection.SimpleQueue("cpu")
            queue.put("run")
            assert queue.get(timeout=20).payload == "run"
