"""How many requests a second the site answers: gunicorn with two workers, asked by `wrk`."""

from __future__ import annotations

import contextlib
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# Workers with one request at a time, and as docs/deploy.md starts them.
KINDS = {"plain": (), "as deployed": ("--worker-class", "gthread", "--threads", "8")}
WRK = ("wrk", "-t1", "-c8", "-d5s", "-H", "Accept-Encoding: gzip")


@contextlib.contextmanager
def gunicorn(*options: str) -> Iterator[tuple[str, int]]:
    """Its address and process id."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{probe.getsockname()[1]}"
    program = str(Path(sys.executable).parent / "gunicorn")
    command = [program, "leaderboard.wsgi:application", "--bind", where, "--workers", "2"]
    command += options
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as server:
        time.sleep(4)
        try:
            yield f"http://{where}", server.pid
        finally:
            server.terminate()


def load(address: str) -> dict[str, Any]:
    """Requests a second for a page from the cache, and what a worker weighs afterwards."""
    if shutil.which("wrk") is None:
        return {"requests": "wrk is not installed"}
    return {kind: _load(address, options) for kind, options in KINDS.items()}


def _load(address: str, options: Sequence[str]) -> dict[str, Any]:
    with gunicorn(*options) as (site, pid):
        with urllib.request.urlopen(site + address) as answer:
            etag = answer.headers["ETag"]
        rates = {
            "whole": _rate(site + address),
            "304": _rate(site + address, f"If-None-Match: {etag}"),
        }
        workers = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        weights = [_rss_mb(worker) for worker in workers]
    return {"requests/s": rates, "worker RSS without mapped files, MB": max(weights)}


def _rate(url: str, header: str = "X-Nothing: 1") -> float:
    done = subprocess.run([*WRK, "-H", header, url], capture_output=True, text=True, check=True)
    found = re.search(r"Requests/sec:\s+([\d.]+)", done.stdout)
    return float(found[1]) if found else 0.0


def _rss_mb(pid: str) -> float:
    found = re.search(r"RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0
