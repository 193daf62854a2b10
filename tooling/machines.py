"""Start Debian systems of one network on this machine, for `make test-deploy`. Needs root.

Each has folders, processes and a host name of its own, by namespaces: no container engine and no
systemd. They share a network that leads nowhere else.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tooling import places
from tooling.console import Failure

RELEASE = "bookworm"
# What a small root lacks, and any installed Debian has.
INSTALLED = ("mount",)
# What redis needs on that Debian's Python, 3.11.2, and pip does not see from a newer one.
FOR_ITS_PYTHON = "async-timeout"
NEEDED = ("mmdebstrap", "unshare", "nsenter", "pivot_root", "ip")
START_TIMEOUT_S = 20.0
# Becomes the first process of the system: it has no children but those that are left to it.
_FIRST = (
    "import signal, time\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\nwhile 1: time.sleep(99)"
)
_START = r"""
set -eu
root=$1 base=$2 own=$3 shared=$4 name=$5 first=$6
mount -t overlay overlay -o "lowerdir=$base,upperdir=$own/upper,workdir=$own/work" "$root"
mkdir -p "$root/shared" "$root/.before"
mount --bind "$shared" "$root/shared"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --rbind /sys "$root/sys"
for folder in run tmp dev/shm; do mount -t tmpfs -o mode=1777 tmpfs "$root/$folder"; done
hostname "$name"
ip link set lo up
cd "$root"
pivot_root . .before
umount --lazy /.before
touch /run/ready
exec python3 -c "$first"
"""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Hold a system that runs: its name, its folder as seen from here, its first process."""

    name: str
    pid: int

    @property
    def root(self) -> Path:
        return Path(f"/proc/{self.pid}/root")

    def run(self, script: str, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """Run a script by bash as root until it ends or a command of it fails."""
        spaces = ["--mount", "--uts", "--ipc", "--pid", "--net", "--root"]
        enter = ["nsenter", f"--target={self.pid}", *spaces, "env", "--ignore-environment"]
        path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        told = [path, "HOME=/root", "LANG=C.UTF-8", *(f"{k}={v}" for k, v in env.items())]
        return subprocess.run(
            [*enter, *told, "bash", "-eu", "-c", f"cd /root\n{script}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )

    def write(self, path: str, content: bytes, mode: int) -> None:
        """Write a file as root."""
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        target.chmod(mode)


def lacking() -> list[str]:
    """Return why this machine cannot do it; nothing where it can."""
    missing = [name for name in NEEDED if shutil.which(name) is None]
    return [*([] if os.geteuid() == 0 else ["root"]), *missing]


def debian(packages: Sequence[str]) -> Path:
    """Return the folder of a Debian with these packages, made once and kept in the state folder."""
    words = ",".join([*INSTALLED, *packages])
    digest = hashlib.sha256(f"{RELEASE} {words}".encode()).hexdigest()[:16]
    folder = places.state() / "deploy" / f"debian-{digest}"
    if not folder.exists():
        draft = folder.with_suffix(".part")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        _do(["mmdebstrap", "--quiet", "--variant=apt", f"--include={words}", RELEASE, str(draft)])
        draft.chmod(0o755)
        draft.rename(folder)
    return folder


def wheels(requirements: Sequence[str]) -> Path:
    """Return the folder of the wheels that files in `requirements/` name, fetched once and kept."""
    files = [places.REQUIREMENTS / name for name in (*requirements, "constraints.txt")]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
    folder = places.state() / "deploy" / f"wheels-{digest}"
    if not folder.exists():
        draft = folder.with_suffix(".part")
        shutil.rmtree(draft, ignore_errors=True)
        named = [word for file in files[:-1] for word in ("-r", str(file))]
        of_debian = ["--only-binary=:all:", "--python-version=3.11", "--dest", str(draft)]
        download = [places.PYTHON, "-m", "pip", "download", "--quiet", "--quiet"]
        _do([*download, *named, FOR_ITS_PYTHON, "-c", str(files[-1]), *of_debian])
        draft.rename(folder)
    return folder


@contextmanager
def network(names: Sequence[str], base: Path, shared: Path) -> Iterator[list[Machine]]:
    """Start systems that reach each other at 127.0.0.1, with `shared` as /shared. Nothing that they
    write survives the block."""
    with ExitStack() as stack:
        kept = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pkb-deploy-")))
        found: list[Machine] = []
        for name in names:
            started = _started(name, base, kept / name, shared, found[0] if found else None)
            found.append(stack.enter_context(started))
        yield found


@contextmanager
def _started(
    name: str, base: Path, folder: Path, shared: Path, first: Machine | None
) -> Iterator[Machine]:
    root, own = folder / "root", folder / "own"
    for path in (root, own / "upper", own / "work"):
        path.mkdir(parents=True)
    (own / "upper").chmod(0o755)
    joins = ["nsenter", f"--net=/proc/{first.pid}/ns/net"] if first else []
    spaces = ["--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child"]
    own_net = [] if first else ["--net"]
    words = [str(root), str(base), str(own), str(shared), name, _FIRST]
    command = [*joins, "unshare", *spaces, *own_net, "bash", "-c", _START, "start", *words]
    process = subprocess.Popen(command, start_new_session=True)
    try:
        yield Machine(name=name, pid=_first_process(process))
    finally:
        process.kill()  # and, by --kill-child, all that the system runs
        process.wait()


def _first_process(process: subprocess.Popen[bytes]) -> int:
    """Return the process that is the system's first, once the system is there."""
    deadline_s = time.monotonic() + START_TIMEOUT_S
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while time.monotonic() < deadline_s and process.poll() is None:
        for pid in children.read_text().split():
            if Path(f"/proc/{pid}/root", "run", "ready").exists():
                return int(pid)
        time.sleep(0.05)
    raise Failure("a Debian system did not start; what it said stands above")


def _do(command: Sequence[str]) -> None:
    if subprocess.run(command, check=False).returncode:
        raise Failure(f"{command[0]} failed; what it said stands above")
