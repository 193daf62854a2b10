"""Tries to get out of a sandbox from inside; every attempt must fail. One JSON line an attempt."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import signal
import socket
import stat
import sys
from collections.abc import Callable
from pathlib import Path

_CLONE_NEWUSER = 0x10000000
_PTRACE_ATTACH = 16
FORKS = 200
FAMILIES = range(64)  # of sockets; the kernel knows fewer
OWN_FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)


def main(answer_fd: int, *mode: str) -> int:
    """Make every attempt, and write how it went; with `filtered` in the mode, also those that only
    the seccomp filter stops. Return 0."""
    attempts = ATTEMPTS | (FILTERED if "filtered" in mode else {})
    with os.fdopen(answer_fd, "w") as answers:
        for name, attempt in attempts.items():
            try:
                escaped = attempt()
                passed, detail = escaped is None, escaped or "refused"
            except OSError as error:
                passed, detail = True, error.strerror or str(error)
            answers.write(json.dumps({"name": name, "passed": passed, "detail": detail}) + "\n")
            answers.flush()
    return 0


def _reach_network() -> str | None:
    with socket.create_connection(("192.0.2.1", 53), timeout=1):
        return "an outside address could be reached"


def _see_interfaces() -> str | None:
    names = [name for _, name in socket.if_nameindex()]
    return None if names == ["lo"] else f"network interfaces {names}"


def _see_processes() -> str | None:
    seen = [pid for pid in os.listdir("/proc") if pid.isdigit()]
    return None if len(seen) <= 3 else f"{len(seen)} processes are visible"


def _write_system() -> str | None:
    Path("/usr/pkb-probe").write_text("x")
    return "/usr is writable"


def _write_interpreter() -> str | None:
    Path(sys.prefix, "pkb-probe").write_text("x")
    return "the Python environment is writable"


def _read_secrets() -> str | None:
    for path in ("/etc/shadow", "/root/.ssh", "/home", "/var", "/run"):
        if Path(path).exists():
            return f"{path} is visible"
    return None


def _read_root_only() -> str | None:
    """Try files of /proc that show the whole host, such as kpageflags."""
    for entry in Path("/proc").iterdir():
        mode = entry.lstat().st_mode
        if stat.S_ISREG(mode) and not mode & stat.S_IROTH:
            with contextlib.suppress(OSError), entry.open("rb"):
                return f"{entry} is readable, though only root may read it"
    return None


def _new_namespace() -> str | None:
    return _call("unshare", _CLONE_NEWUSER)


def _mount() -> str | None:
    return _call("mount", b"none", b"/tmp", b"tmpfs", 0, None)


def _ptrace() -> str | None:
    return _call("ptrace", _PTRACE_ATTACH, 1, None, None)


def _gain_privileges() -> str | None:
    status = Path("/proc/self/status").read_text()
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    if int(fields["CapEff"], 16):
        return f"effective capabilities {fields['CapEff']}"
    return None if fields["NoNewPrivs"].strip() == "1" else "no_new_privs is not set"


def _see_environment() -> str | None:
    odd = [name for name in os.environ if "TOKEN" in name or "SECRET" in name or "PASSWORD" in name]
    return f"environment holds {odd}" if odd else None


def _fork_many() -> str | None:
    """Fork and end what was forked: whether forks are refused is counted from outside."""
    children = []
    try:
        for _ in range(FORKS):
            pid = os.fork()
            if pid == 0:
                signal.pause()
            children.append(pid)
    except OSError:
        return None
    finally:
        for pid in children:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
    return None


def _open_other_sockets() -> str | None:
    """Try families that no namespace holds: AF_VSOCK reaches the hypervisor, and the host."""
    for family in set(FAMILIES) - set(OWN_FAMILIES):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
            with contextlib.suppress(OSError), socket.socket(family, kind):
                return f"a socket of family {family} could be opened"
    return None


def _call_denied() -> str | None:
    """Try calls that press the host, by their numbers on x86-64."""
    libc, context = ctypes.CDLL(None), ctypes.c_void_p()
    calls = {"sync": (162,), "syncfs": (306, 0), "io_setup": (206, 1, ctypes.byref(context))}
    worked = [name for name, call in calls.items() if libc.syscall(*call) >= 0]
    return f"{worked} worked" if worked else None


def _call(name: str, *arguments: object) -> str | None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), errno.errorcode.get(ctypes.get_errno(), "refused"))
    return f"{name} worked"


ATTEMPTS: dict[str, Callable[[], str | None]] = {
    "network": _reach_network,
    "interfaces": _see_interfaces,
    "processes": _see_processes,
    "system files": _write_system,
    "interpreter": _write_interpreter,
    "secrets": _read_secrets,
    "root-only files": _read_root_only,
    "namespaces": _new_namespace,
    "mount": _mount,
    "ptrace": _ptrace,
    "privileges": _gain_privileges,
    "environment": _see_environment,
    "forks": _fork_many,
}
FILTERED: dict[str, Callable[[], str | None]] = {
    "socket families": _open_other_sockets,
    "system calls": _call_denied,
}

if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), *sys.argv[2:]))
