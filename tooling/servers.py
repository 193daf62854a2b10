"""Start a PostgreSQL and a Redis for a `with` block, on free ports, in folders of their own."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tooling.console import Failure

START_TIMEOUT_S = 60.0
POSTGRESQL_SETTINGS = (
    "listen_addresses=127.0.0.1",
    "max_connections=200",
    "fsync=off",  # the data is thrown away, so it need not survive a crash
    "synchronous_commit=off",
    "full_page_writes=off",
)
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


def postgresql_folder() -> Path | None:
    """Return the folder of the newest installed PostgreSQL's programs, None without one."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=_major_version)
    if found:
        return found[-1].parent
    initdb = shutil.which("initdb")
    return Path(initdb).parent if initdb else None


@contextmanager
def postgresql() -> Iterator[str]:
    """Yield a DATABASE_URL whose user may create databases. Nothing survives the block."""
    programs = postgresql_folder()
    if programs is None:
        raise Failure("PostgreSQL is not installed: apt-get install postgresql")
    user, port, password = _unprivileged_user(), free_port(), secrets.token_urlsafe(16)
    with _folder(user) as folder:
        (folder / "password").write_text(password)
        data = str(folder / "data")
        account = ["-U", "pkb", "--pwfile", str(folder / "password"), "-A", "scram-sha-256"]
        options = ["-D", data, "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"]
        _run([str(programs / "initdb"), *account, *options], folder, user)
        settings = [*POSTGRESQL_SETTINGS, f"unix_socket_directories={folder}"]
        server = [str(programs / "postgres"), "-D", data, "-p", str(port)]
        command = [*server, *(word for setting in settings for word in ("-c", setting))]
        ready = [str(programs / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port)]
        with _running("PostgreSQL", command, folder, user, signal.SIGINT) as is_alive:
            _wait("PostgreSQL", lambda: _succeeds(ready), is_alive)
            yield f"postgresql://pkb:{password}@127.0.0.1:{port}/postgres"


@contextmanager
def redis() -> Iterator[str]:
    """Yield a broker URL. Nothing survives the block."""
    program = shutil.which("redis-server")
    if program is None:
        raise Failure("Redis is not installed: apt-get install redis-server")
    user, port, password = _unprivileged_user(), free_port(), secrets.token_urlsafe(16)
    with _folder(user) as folder:
        settings = folder / "redis.conf"
        settings.write_text(
            f"bind 127.0.0.1\nport {port}\nrequirepass {password}\ndir {folder}\nsave ''\n"
        )
        with _running("Redis", [program, str(settings)], folder, user, signal.SIGTERM) as is_alive:
            _wait("Redis", lambda: _accepts(port), is_alive)
            yield f"redis://:{password}@127.0.0.1:{port}/0"


def free_port(preferred: int = 0, *, attempts: int = 1) -> int:
    """Return the first free port of `preferred` and its successors; 0 lets the system choose.

    Raises Failure when every one of them is taken.
    """
    for port in range(preferred, preferred + attempts):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return int(probe.getsockname()[1])
    raise Failure(
        f"ports {preferred} to {preferred + attempts - 1} are all taken: free one, "
        "or name another with PKB_PORT"
    )


def _unprivileged_user() -> str | None:
    """Return a user for PostgreSQL where we are root, which it refuses; None keeps ours."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


@contextmanager
def _folder(user: str | None) -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="pkb-server-"))
    try:
        if user is not None:
            shutil.chown(path, user)
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _run(command: Sequence[str], folder: Path, user: str | None) -> None:
    done = subprocess.run(
        command, cwd=folder, user=user, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Failure(f"{command[0]} failed:\n{done.stdout}{done.stderr}")


@contextmanager
def _running(
    name: str, command: Sequence[str], folder: Path, user: str | None, polite: int
) -> Iterator[Callable[[], bool]]:
    """Keep a server running for the block; it dies with us even when we are killed."""
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            user=user,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=lambda: _LIBC.prctl(_PR_SET_PDEATHSIG, polite),  # noqa: PLW1509 no threads here
        )
    try:
        yield lambda: process.poll() is None
    finally:
        if process.poll() is not None:
            print(f"{name} ended early:\n{(folder / 'output').read_text(errors='replace')}")
        process.send_signal(polite)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait(name: str, is_ready: Callable[[], bool], is_alive: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while not is_ready():
        if not is_alive() or time.monotonic() > deadline_s:
            raise Failure(f"{name} did not start; what it said stands above")
        time.sleep(0.05)


def _succeeds(command: Sequence[str]) -> bool:
    return subprocess.run(command, check=False).returncode == 0


def _accepts(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _major_version(initdb: Path) -> int:
    return int(initdb.parent.parent.name)
