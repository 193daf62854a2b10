"""A site that answers from a script, for the client to talk to, and folders for it to convert."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

RUN = "87651bf9-5a75-4fc1-a13c-3c6f0956ebc4"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What is answered to one request; `is_cut` ends it before its body is whole."""

    value: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    is_cut: bool = False


@dataclass(kw_only=True)
class Asked:
    """The address of a site, and what it was asked: method, path, headers."""

    url: str = ""
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)


@contextlib.contextmanager
def site(*answers: Answer) -> Iterator[Asked]:
    """A site that gives these answers, the last of them again and again."""
    asked, left = Asked(), list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            asked.requests.append((self.command, self.path, dict(self.headers)))
            answer = left.pop(0) if len(left) > 1 else left[0]
            body = json.dumps(answer.value).encode() if answer.raw is None else answer.raw
            self.send_response(answer.status)
            self.send_header("Content-Length", str(len(body) + 9 * answer.is_cut))
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(b"" if answer.status == 304 else body)

        do_POST = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    asked.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield asked
    finally:
        server.shutdown()
        server.server_close()


def refusal(status: int, message: str = "No.", fix: str = "Mend it.", **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    error = {"code": "no", "message": message, "fix": fix, "fields": {"model": "needed"}}
    return Answer(value={"error": error}, status=status, headers=named)


def run(**values: Any) -> dict[str, Any]:
    """A run as the API describes it: one that is right."""
    made = {"id": RUN, "status": "done", "verdict": "ok", "problem": "allreduce", "message": "ok"}
    return {**made, "url": f"http://site/runs/{RUN}", "queue_position": 1, **values}


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder
