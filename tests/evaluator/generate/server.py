"""A server that speaks /v1/chat/completions from a script, for the real client to talk to."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the server does with one request: `cut` ends it in the middle, `raw` replaces the
    document."""

    document: Body = field(default_factory=dict)
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    is_cut: bool = False
    delay_s: float = 0.0


Script = Callable[[Body], Answer]


def said(
    text: str | None,
    *,
    calls: tuple[tuple[str, str], ...] = (),
    finish: str = "stop",
    usage: tuple[int, int] | None = (100, 50),
    refusal: str | None = None,
) -> Answer:
    """A completion with a text, or with calls of (name, arguments)."""
    tool_calls = [
        {"id": f"c{i}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for i, (name, arguments) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": text, "refusal": refusal}
    document: Body = {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted-1",
        "choices": [
            {
                "index": 0,
                "finish_reason": finish,
                "message": message | ({"tool_calls": tool_calls} if tool_calls else {}),
            }
        ],
    }
    if usage is not None:
        document["usage"] = {
            "prompt_tokens": usage[0],
            "completion_tokens": usage[1],
            "total_tokens": sum(usage),
            "prompt_tokens_details": {"cached_tokens": usage[0] // 2},
        }
    return Answer(document=document)


def in_pieces(answer: Answer, *, end: bytes = b"data: [DONE]\n\n") -> Answer:
    """The same, sent as server-sent events of three characters each; the usage comes last."""
    document = dict(answer.document)
    (choice,) = document.pop("choices")
    message, usage = choice["message"], document.pop("usage", None)
    deltas: list[Body] = [{"role": "assistant"}]
    deltas += [{"content": part} for part in _cut(message["content"] or "")]
    for index, call in enumerate(message.get("tool_calls", ())):
        named = {"name": call["function"]["name"], "arguments": ""}
        deltas.append({"tool_calls": [{"index": index, "id": call["id"], "function": named}]})
        for part in _cut(call["function"]["arguments"]):
            deltas.append({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
    ended = [*((delta, None) for delta in deltas), ({}, choice["finish_reason"])]
    events = [
        document | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        for delta, finish in ended
    ]
    events += [document | {"choices": [], "usage": usage}] if usage else []
    lines = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    return replace(answer, raw=lines + end, headers={"Content-Type": "text/event-stream"})


def _cut(text: str) -> list[str]:
    return [text[at : at + 3] for at in range(0, len(text), 3)]


def failing(status: int, code: str | None = None, **headers: str) -> Answer:
    """An error of the server, as OpenAI's looks."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    document = {"error": {"message": code or "no", "type": "error", "code": code}}
    return Answer(status=status, document=document, headers=named)


@dataclass(kw_only=True)
class Served:
    """The address of a server at work, and what it was asked."""

    respond: Script
    url: str = ""
    asked: list[Body] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


class Handler(BaseHTTPRequestHandler):
    """Answers one connection's requests by the script of its server."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # headers and body in one write: two wait for each other's acknowledgement
    disable_nagle_algorithm = True
    served: Served

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.served.asked.append(body)
        self.served.keys.append(self.headers.get("Authorization", ""))
        self.served.headers.append({n.lower(): v for n, v in self.headers.items()})
        answer = self.served.respond(body)
        time.sleep(answer.delay_s)
        data = json.dumps(answer.document).encode() if answer.raw is None else answer.raw
        self.send_response(answer.status)
        headers = {"Content-Type": "application/json", "Content-Length": str(len(data))}
        for name, value in (headers | answer.headers).items():
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            self.wfile.write(data[: len(data) // 2] if answer.is_cut else data)
            self.wfile.flush()
        self.close_connection |= answer.is_cut

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextlib.contextmanager
def serving(script: Script | list[Answer]) -> Iterator[Served]:
    """Serve until the end of the block: answers in turn, or whatever a function says to a body."""
    turns = iter(script) if isinstance(script, list) else None
    served = Served(respond=script if callable(script) else lambda _: next(turns or iter(())))
    handler = type("ScriptedHandler", (Handler,), {"served": served})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    served.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
