#!/usr/bin/env python3
"""Stand in for systemctl where there is no systemd: start what our unit files say.

`make test-deploy` puts this file into its Debian systems as /usr/local/bin/systemctl. Units that
are not ours are started by Debian's scripts in /etc/init.d. What only systemd can do (cgroups,
sandboxes of units, timers, restarts) is left out.
"""

from __future__ import annotations

import os
import pwd
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

UNITS, RUN, LOGS = Path("/etc/systemd/system"), Path("/run/pkb-units"), Path("/var/log/pkb-units")
STOP_WITHIN_S = 60.0


def read(unit: str) -> dict[str, list[str]]:
    """Return the settings of a unit, with its instance filled in."""
    name, _, instance = unit.partition("@")
    path = UNITS / (f"{name}@.service" if instance else f"{name}.service")
    specifiers = {"%i": instance, "%H": socket.gethostname(), "%%": "%"}
    found: dict[str, list[str]] = {}
    for line in path.read_text().splitlines():
        key, separator, value = line.partition("=")
        if separator and key.isalpha():
            filled = re.sub(r"%[iH%]", lambda match: specifiers[match[0]], value)
            found.setdefault(key, []).append(filled)
    return found


def environment(unit: dict[str, list[str]], user: pwd.struct_passwd) -> dict[str, str]:
    """Return the environment of the unit's process."""
    found = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": user.pw_dir, "USER": user.pw_name}
    lines = list(unit.get("Environment", []))
    for path in unit.get("EnvironmentFile", []):
        lines += Path(path).read_text().splitlines()
    for line in lines:
        if line.strip() and line.strip()[0] not in "#;":
            name, _, value = line.strip().partition("=")
            found[name] = value
    return found


def make_folders(unit: dict[str, list[str]], user: pwd.struct_passwd) -> None:
    """Make the folders that systemd makes for a unit."""
    for key, parent in (("StateDirectory", "/var/lib"), ("LogsDirectory", "/var/log")):
        for path in (Path(parent, value) for value in unit.get(key, [])):
            path.mkdir(mode=0o700, exist_ok=True)
            os.chown(path, user.pw_uid, user.pw_gid)


def start(name: str) -> None:
    """Start a unit's process; wait for one that is `oneshot`, and exit as that does."""
    unit = read(name)
    user = pwd.getpwnam(unit["User"][-1])
    make_folders(unit, user)
    env = environment(unit, user)
    words = [
        re.sub(r"\$\{(\w+)\}", lambda match: env[match[1]], word)
        for word in shlex.split(unit["ExecStart"][-1])
    ]
    RUN.mkdir(exist_ok=True)
    LOGS.mkdir(exist_ok=True)
    with (LOGS / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(
            words,
            cwd=unit["WorkingDirectory"][-1],
            env=env,
            user=user.pw_uid,
            group=user.pw_gid,
            extra_groups=[],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    if unit.get("Type") == ["oneshot"]:
        if code := process.wait():
            sys.stderr.write((LOGS / f"{name}.log").read_text(errors="replace"))
            sys.exit(code)
    else:
        (RUN / name).write_text(str(process.pid))


def stop(name: str) -> None:
    """Send the signal that systemd sends, and wait for the end."""
    path = RUN / name
    if not path.exists():
        return
    pid = int(path.read_text())
    path.unlink()
    deadline_s = time.monotonic() + STOP_WITHIN_S
    try:
        os.kill(pid, signal.SIGTERM)
        while time.monotonic() < deadline_s:
            os.kill(pid, 0)
            time.sleep(0.1)
    except ProcessLookupError:
        return


def act(verb: str, name: str) -> None:
    """Do to one unit what systemctl would do."""
    if name.endswith(".timer"):
        return  # nothing rings it here
    template = name.partition("@")[0] + ("@" if "@" in name else "")
    if not (UNITS / f"{template}.service").exists():
        if not Path("/etc/init.d", name).exists():
            sys.exit(f"there is no unit {name}")
        code = subprocess.run([f"/etc/init.d/{name}", verb], check=False).returncode
        sys.exit(code) if code else None
        return
    if verb in ("stop", "restart"):
        stop(name)
    if verb in ("start", "restart"):
        start(name)


def main(words: list[str]) -> None:
    verb, names = words[0], [word for word in words[1:] if word[0] != "-"]
    if verb == "enable":
        for name in names:
            if name.endswith(".timer") and not (UNITS / name).exists():
                sys.exit(f"there is no unit {name}")
        verb = "start" if "--now" in words else ""
    if verb in ("start", "stop", "restart", "reload"):
        for name in names:
            act(verb, name)


if __name__ == "__main__":
    main(sys.argv[1:])
