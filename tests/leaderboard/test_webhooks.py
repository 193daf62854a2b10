"""Posts to addresses of users reach the internet alone, are signed, and end in time."""

from __future__ import annotations

import http.server
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from leaderboard.runs import webhooks

Server = http.server.ThreadingHTTPServer


class _Handler(http.server.BaseHTTPRequestHandler):
    """Answers as its server's `does` says, and keeps what it was sent."""

    server: Any

    def do_POST(self) -> None:
        self.server.got.append(
            (dict(self.headers), self.rfile.read(int(self.headers["Content-Length"])))
        )
        self.server.does(self)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A server that stands for one on the internet, without TLS."""
    made: Any = Server(("127.0.0.1", 0), _Handler)
    made.got, made.does = [], lambda handler: handler.send_error(500)
    threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True).start()

    def connect(connection: Any) -> None:
        connection.sock = socket.create_connection(made.server_address, 5)

    monkeypatch.setattr("leaderboard.runs.webhooks.public_address", lambda host: "192.0.2.1")
    monkeypatch.setattr("leaderboard.runs.webhooks._Pinned.connect", connect)
    monkeypatch.setattr("leaderboard.runs.webhooks.TIMEOUT_S", 0.4)
    yield made
    made.shutdown()
    made.server_close()


def answer(status: int, **headers: str) -> Any:
    def does(handler: Any) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()

    return does


def test_a_message_is_signed_over_its_time_and_body(server: Any) -> None:
    server.does = answer(204)
    webhooks.post("https://example.org/hook?a=1", "secret", b'{"id": 1}')
    [(headers, body)] = server.got
    assert headers["Host"] == "example.org"
    stamp = int(headers["PKB-Timestamp"])
    assert abs(stamp - time.time()) < 60
    assert headers["PKB-Signature"] == webhooks.signature("secret", stamp, body)
    assert webhooks.signature("secret", 1700000000, b"{}") == (
        "sha256=b8569b78799ff9e3cbff0fc2d63a33a2b57f3282abd07c37ae5e8e7d79a5f163"
    )


@pytest.mark.parametrize("status", [301, 307, 404, 500])
def test_what_is_not_taken_is_not_sent_and_no_redirect_is_followed(
    server: Any, status: int
) -> None:
    server.does = answer(status, Location="https://10.0.0.1/")
    with pytest.raises(webhooks.NotSent, match=f"answered {status}"):
        webhooks.post("https://example.org/", "secret", b"{}")
    assert len(server.got) == 1


def test_an_answer_that_comes_in_drops_is_cut_off(server: Any) -> None:
    def drip(handler: Any) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
        with suppress(OSError):
            for _ in range(40):
                handler.wfile.write(b"X: y\r\n")
                time.sleep(0.1)

    server.does = drip
    began = time.monotonic()
    with pytest.raises(webhooks.NotSent, match="no answer within"):
        webhooks.post("https://example.org/", "secret", b"{}")
    assert time.monotonic() - began < 3


@pytest.mark.parametrize(
    ("address", "is_public"),
    [
        *(("93.184.215.14", True), ("2606:2800:21f:cb07::1", True)),
        *(("127.0.0.1", False), ("10.1.2.3", False), ("172.16.0.1", False), ("192.168.1.1", False)),
        *(("169.254.169.254", False), ("100.64.0.1", False), ("0.0.0.0", False)),
        *(("224.0.0.1", False), ("255.255.255.255", False), ("192.0.2.1", False)),
        *(("::1", False), ("::", False), ("fe80::1%eth0", False), ("fc00::1", False)),
        *(("fec0::1", False), ("ff02::1", False), ("::ffff:127.0.0.1", False)),
        *(("::ffff:93.184.215.14", False), ("64:ff9b::7f00:1", False), ("2002:7f00:1::", False)),
        *(("2001:db8::1", False), ("not an address", False)),
    ],
)
def test_only_addresses_of_the_internet_are_asked(address: str, is_public: bool) -> None:
    assert webhooks.is_public(address) is is_public


def test_one_private_address_among_several_is_enough_to_refuse(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def resolve(*_: object, **__: object) -> list[Any]:
        return [(0, 0, 0, "", (ip, 443)) for ip in ("93.184.215.14", "10.0.0.1")]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(webhooks.NotSent, match="not of the internet"):
        webhooks.post("https://example.org/", "secret", b"{}")


def test_a_lookup_that_takes_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    is_over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: is_over.wait(20))
    monkeypatch.setattr(webhooks, "TIMEOUT_S", 0.1)
    with pytest.raises(webhooks.NotSent, match="not found within"):
        webhooks.post("https://example.org/", "secret", b"{}")
    is_over.set()


@pytest.mark.parametrize("host", ["localhost", "127.1", "0x7f.1", "2130706433", "[::1]"])
def test_names_of_this_host_are_refused_however_they_are_written(host: str) -> None:
    with pytest.raises(webhooks.NotSent):
        webhooks.post(f"https://{host}/", "secret", b"{}")
