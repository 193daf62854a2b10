"""The files that operators copy: proxy, units, alert rules, board."""

from __future__ import annotations

import configparser
import contextlib
import json
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tooling import servers

ROOT = Path(__file__).resolve().parent.parent
DOCKER = ROOT / "docker"
SLOW_CLIENTS = 40
# Reads a body, as the site does, and answers how it believes to have been asked.
APPLICATION = """
def application(environ, start):
    environ["wsgi.input"].read()
    scheme = environ["wsgi.url_scheme"].encode()
    start("200 OK", [("Content-Length", str(len(scheme)))])
    return [scheme]
"""


@contextlib.contextmanager
def _running(command: list[str], folder: Path, port: int) -> Iterator[None]:
    with (folder / "output").open("ab") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
    try:
        deadline_s = time.monotonic() + 60
        while not _accepts(port):
            said = (folder / "output").read_text(errors="replace")
            assert process.poll() is None, said
            assert time.monotonic() < deadline_s, said
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait(timeout=30)


def _accepts(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


@contextlib.contextmanager
def _slow_clients(port: int) -> Iterator[None]:
    """Clients that have sent a tenth of what they said they would."""
    head = b"POST / HTTP/1.1\r\nHost: leaderboard.example.org\r\nContent-Length: 1000\r\n\r\n"
    with contextlib.ExitStack() as stack:
        for _ in range(SLOW_CLIENTS):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            client.sendall(head + b"x" * 100)
        time.sleep(1)
        yield


def _answers(port: int, within_s: float) -> bool:
    """Whether it does; never does gunicorn itself believe that there is a proxy with TLS."""
    named = {"Host": "leaderboard.example.org", "X-Forwarded-Proto": "https"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/", headers=named)
    try:
        with urllib.request.urlopen(request, timeout=within_s) as answer:
            return bool(answer.read() == b"http")
    except OSError:
        return False


def _proxy_settings(listen: int, site: int) -> str:
    """The example without TLS, on these ports."""
    text = (DOCKER / "nginx.conf").read_text()
    text = re.sub(r"\n *ssl_certificate.*", "", text)
    text = text.replace("listen 443 ssl", f"listen 127.0.0.1:{listen}")
    text = text.replace("127.0.0.1:8000", f"127.0.0.1:{site}")
    text = text.replace("listen 80;", f"listen 127.0.0.1:{servers.free_port()};")
    temporary = [f"{name}_temp_path tmp;" for name in ("client_body", "proxy", "fastcgi")]
    others = [f"{name}_temp_path tmp;" for name in ("uwsgi", "scgi")]
    http = "\n".join(["access_log off;", *temporary, *others, text])
    return f"daemon off;\npid nginx.pid;\nevents {{}}\nhttp {{\n{http}\n}}\n"


@pytest.mark.skipif(shutil.which("nginx") is None, reason="needs nginx-light")
def test_slow_clients_do_not_stop_the_site_behind_the_proxy(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(APPLICATION)
    site, proxy = servers.free_port(), servers.free_port()
    (tmp_path / "nginx.conf").write_text(_proxy_settings(proxy, site))
    gunicorn = [sys.executable, "-m", "gunicorn", "--config", str(DOCKER / "gunicorn.conf.py")]
    # One worker: of two the one that wakes first may take them all, and leave the other free.
    gunicorn += ["--workers", "1"]
    nginx = ["nginx", "-p", f"{tmp_path}/", "-c", "nginx.conf", "-e", "stderr"]
    with (
        _running([*gunicorn, "slow:application", "--bind", f"127.0.0.1:{site}"], tmp_path, site),
        _running(nginx, tmp_path, proxy),
    ):
        with _slow_clients(proxy):
            assert _answers(proxy, within_s=10)
            assert _answers(site, within_s=10)
        with _slow_clients(site):
            assert not _answers(site, within_s=2)  # what the proxy is for


def test_alert_rules_and_board_ask_for_metrics_that_there_are() -> None:
    source = (ROOT / "leaderboard" / "operations" / "metrics.py").read_text()
    known = set(re.findall(r'"(pkb_\w+)"', source))
    rules = yaml.safe_load((DOCKER / "monitoring" / "pkb-alerts.yml").read_text())
    board = json.loads((DOCKER / "monitoring" / "grafana-board.json").read_text())
    asked = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    asked += [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    names = {name for text in asked for name in re.findall(r"pkb_\w+", text)}
    assert len(names) >= 6
    assert {re.sub(r"_(total|bucket)$", "", name) for name in names} <= known


@pytest.mark.parametrize("path", sorted((DOCKER / "systemd").iterdir()), ids=lambda p: p.name)
def test_a_unit_starts_what_there_is(path: Path) -> None:
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(path)
    if path.suffix == ".timer":
        assert path.with_suffix(".service").exists()
        return
    command = unit["Service"]["ExecStart"]
    assert any(name in command for name in ("leaderboard.wsgi", "evaluator.worker", "backup"))
    is_daemon = "Type" not in unit["Service"]
    assert (unit["Service"].get("Restart") == "always") == is_daemon
