"""Start the site and the worker that `make up` keeps running, and restart them when stale."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import subprocess
from pathlib import Path

from leaderboard.kit.secret_key_file import secret_key_path
from tooling import client, places, processes, servers
from tooling.console import Failure, run_logged, tail

SITE, WORKER = "site", "worker"
QUEUE = "cpu"
DEFAULT_PORT = 8000
PORTS_TRIED = 50
START_TIMEOUT_S = 60.0
STARTED_FROM = (
    *("problems", "evaluator", "leaderboard", "templates", "static", "requirements"),
    "docker/gunicorn.conf.py",
)
OWNER = "admin"
# Leaves a password alone that somebody has changed.
OWNER_SCRIPT = f"""
import sys
from django.contrib.auth import get_user_model
owner, is_new = get_user_model().objects.get_or_create(username="{OWNER}")
if is_new or not owner.has_usable_password():
    owner.is_staff = owner.is_superuser = True
    owner.set_password(sys.stdin.read())
    owner.save()
"""
# What the settings of docs/settings.md begin with.
STARTED_WITH = (
    *("PKB_", "DEBUG", "SECRET_KEY", "SECURE_", "ALLOWED_HOSTS", "CSRF_", "DATABASE_", "CELERY_"),
    *("BEHIND_", "NUM_PROXIES", "STATIC_BROTLI", "THROTTLE_", "LOG_", "SENTRY_", "ADMINS"),
    *("EMAIL_", "SERVER_EMAIL", "METRICS_", "ACCESS_LOG"),
    *("SIGN_UP", "REQUIRE_SECOND_FACTOR_OF_STAFF", "GITHUB_", "OPENID_"),
    *("CUDA_", "NCCL_", "NVSHMEM_", "TORCH_", "LD_LIBRARY_PATH", "THUNDERKITTENS_ROOT"),
)
OURS = ("PKB_PORT",)


def environment() -> dict[str, str]:
    """Return the environment of every process of the site: as in production, but on plain HTTP
    and within seconds."""
    return {
        **os.environ,
        "DEBUG": os.environ.get("DEBUG") or "0",
        "SECURE_COOKIES": os.environ.get("SECURE_COOKIES") or "0",
        "STATIC_BROTLI": os.environ.get("STATIC_BROTLI") or "0",
        "SIGN_UP": os.environ.get("SIGN_UP") or "1",
        **_own_key(),
        "PATH": f"{places.BIN}:{os.environ['PATH']}",
        "PKB_STATE_DIR": str(places.state()),
        "PYTHONUNBUFFERED": "1",
        "no_proxy": ",".join(filter(None, [os.environ.get("no_proxy"), "127.0.0.1"])),
    }


def _own_key() -> dict[str, str]:
    """Name the file of the key that sessions are signed with, made once if none is given."""
    if os.environ.get("SECRET_KEY") or os.environ.get("SECRET_KEY_FILE"):
        return {}
    return {"SECRET_KEY_FILE": str(secret_key_path(places.state()))}


def is_debug() -> bool:
    return environment()["DEBUG"].lower() not in ("0", "false", "no", "off")


def manage(*words: str) -> None:
    """Run a management command, its output in the log of its name; raises Failure."""
    run_logged(words[0], [places.PYTHON, "manage.py", *words], environment())


def manage_and_read(*words: str, stdin: str = "") -> str:
    """Return what a management command prints on its standard output; raises Failure."""
    done = subprocess.run(
        [places.PYTHON, "manage.py", *words],
        cwd=places.ROOT,
        env=environment(),
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Failure(f"manage.py {words[0]} failed:\n{done.stderr}")
    return done.stdout.strip()


def ensure_snapshot() -> str:
    """Freeze the public data once, so that there is something to cite from the start."""
    return manage_and_read("make_snapshot", "--if-none").splitlines()[-1]


def ensure_owner() -> str:
    """Make an account that may do everything, once; return its name and its password's place."""
    path = places.private_folder("secrets") / f"{OWNER}_password"
    if not path.exists():
        _write_secret(path, secrets.token_urlsafe(16))
    manage_and_read("shell", "-c", OWNER_SCRIPT, stdin=path.read_text())
    return f"{OWNER}, password in {path}"


def start_site() -> tuple[str, str]:
    """Start the site; return its address, and whether it was reused, restarted or started."""
    fingerprint, wanted = code_fingerprint(), os.environ.get("PKB_PORT")
    running = processes.find(SITE)
    if running and running.fingerprint == fingerprint and wanted in (None, str(running.port)):
        return f"http://127.0.0.1:{running.port}", f"reused, pid {running.pid}"
    word = "restarted" if processes.stop(SITE) else "started"
    port = servers.free_port(int(wanted or DEFAULT_PORT), attempts=PORTS_TRIED)
    address = f"http://127.0.0.1:{port}"
    gunicorn = [places.program("gunicorn"), "--config", "docker/gunicorn.conf.py"]
    command = [*gunicorn, "leaderboard.wsgi:application", "--bind", f"127.0.0.1:{port}"]
    record = processes.start(SITE, command, environment(), fingerprint=fingerprint, port=port)
    client.wait_until("the site", lambda: _answers(address, record), START_TIMEOUT_S)
    return address, f"{word}, pid {record.pid}"


def start_worker(site: str) -> str:
    """Start the worker; say if it was reused, its queue, and the isolation that it reaches."""
    isolation = _isolation()
    fingerprint = f"{code_fingerprint()} {site} {isolation}"
    running = processes.find(WORKER)
    if running and running.fingerprint == fingerprint:
        return f"reused, pid {running.pid}, queue {QUEUE}, isolation {isolation}"
    word = "restarted" if processes.stop(WORKER) else "started"
    settings = {
        "PKB_SITE_URL": site,
        "PKB_WORKER_TOKEN": token(site, "worker"),
        "PKB_QUEUE": QUEUE,
        "PKB_MIN_ISOLATION": os.environ.get("PKB_MIN_ISOLATION", isolation),
    }
    celery = [places.program("celery"), "-A", "evaluator.worker", "worker"]
    options = ["-Q", QUEUE, "--concurrency", "1", "--loglevel", "INFO"]
    env = {**environment(), **settings}
    record = processes.start(WORKER, [*celery, *options], env, fingerprint=fingerprint)
    client.wait_until("the worker", lambda: _is_listed(site, record), START_TIMEOUT_S)
    return f"{word}, pid {record.pid}, queue {QUEUE}, isolation {isolation}"


def token(site: str, scope: str) -> str:
    """Return a token of `make up`'s own, kept in a file that only its owner can read.

    A token that this site does not know (its database is another one now) is replaced.
    """
    path = places.private_folder("secrets") / scope
    if path.exists() and _knows(site, text := path.read_text()):
        return text
    whose = ["--queue", QUEUE] if scope == "worker" else ["--user", OWNER]
    text = manage_and_read("create_token", "--scope", scope, "--name", "make up", *whose)
    _write_secret(path, text)
    return text


def _write_secret(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)


def _knows(site: str, text: str) -> bool:
    try:
        client.call(f"{site}/api/v1/status", text)
    except client.Refused as refused:
        if refused.status == 401:
            return False
        raise
    return True


def _is_listed(site: str, record: processes.Record) -> str | None:
    """Return True where the site has heard from a host of our queue."""
    _insist_on(WORKER, record)
    queues = client.call(f"{site}/api/v1/status")["queues"]
    is_alive = any(row["hardware"] == QUEUE and row["hosts_alive"] for row in queues)
    return QUEUE if is_alive else None


def _isolation() -> str:
    """Ask for the level that a sandbox of this host really reaches."""
    command = [places.PYTHON, "-m", "evaluator", "check", "--json"]
    done = subprocess.run(command, cwd=places.ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failure(f"the sandbox cannot be checked:\n{done.stderr}")
    return str(json.loads(done.stdout)["isolation"])


def _answers(address: str, record: processes.Record) -> str:
    _insist_on(SITE, record)
    client.call(f"{address}/api/v1/status")
    return address


def _insist_on(name: str, record: processes.Record) -> None:
    if not record.is_running:
        said = tail(places.logs() / f"{name}.log")
        raise Failure(f"the {name} ended right after its start:\n{said}")


def code_fingerprint() -> str:
    """Return a digest of the code, the settings and the database that a process starts with."""
    digest = hashlib.sha256(str(Path(places.PYTHON).resolve()).encode())
    for name, value in sorted(os.environ.items()):
        if name.startswith(STARTED_WITH) and name not in OURS:
            digest.update(f"{name}={value}\n".encode())
            if name.endswith("_FILE") and Path(value).is_file():
                digest.update(Path(value).read_bytes())
    database = places.state() / "db.sqlite3"
    if database.exists():  # a process goes on reading a file that was removed
        digest.update(str(database.stat().st_ino).encode())
    for folder in STARTED_FROM:
        start = places.ROOT / folder
        for path in [start] if start.is_file() else sorted(start.rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                digest.update(str(path).encode() + path.read_bytes())
    return digest.hexdigest()
