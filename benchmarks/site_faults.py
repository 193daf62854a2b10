"""Kill a site's processes while it is read and judges, and see that nothing is lost.

    PKB_STATE_DIR=/tmp/faults PKB_PORT=8100 PKB_LEASE_S=8 PKB_HEARTBEAT_S=2 PKB_HOST_SILENCE_S=6 \
        .venv/bin/python -m benchmarks.site_faults

Eight threads read pages and the API, 10,000 answers in all. Meanwhile kernels are submitted; the
worker is killed with -9 once in each phase of a run, gunicorn's workers and its master in between.
Prints answers by status, where the worker was killed, and runs by verdict; ends with 1 where a page
failed or a run was lost.
"""

from __future__ import annotations

import collections
import http.client
import itertools
import json
import os
import signal
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tooling import client, places, processes, services
from tooling.up import up

PHASES = ("build", "verify", "timed", "teardown", "queued")
ANSWERS, THREADS, PATIENCE_S = 10_000, 8, 240
READ = (
    *(
        "/",
        "/matrix",
        "/problems",
        "/categories",
        "/status",
        "/leaderboard.json",
        "/leaderboard.csv",
    ),
    *("/problems/1-allreduce", "/mechanisms", "/profiles", "/search?q=ring", "/api/v1/leaderboard"),
    *("/api/v1/problems", "/api/v1/status", "/readyz", "/feed.atom", "/account/login"),
)


class Readers:
    """Reads in threads until so many answers have come; counts them by status."""

    def __init__(self, site: str) -> None:
        self.site, self.left = site, itertools.count()
        self.statuses: collections.Counter[str] = collections.Counter()
        self.threads = [threading.Thread(target=self._read) for _ in range(THREADS)]

    def _read(self) -> None:
        while (number := next(self.left)) < ANSWERS:
            self.statuses[_status(self.site + READ[number % len(READ)])] += 1


def _status(address: str) -> str:
    try:
        with urllib.request.urlopen(address, timeout=30) as answer:
            answer.read()
            return str(answer.status)
    except urllib.error.HTTPError as error:
        return str(error.code)
    except (OSError, http.client.HTTPException):
        time.sleep(0.1)
        return "no connection"


def submit(site: str, token: str, number: int) -> str:
    """Submit a kernel of its own; try again while the site is away. Return its run."""
    source = f"{places.EXAMPLE_KERNEL.read_text()}\n# {number}\n"
    about = {"model": "Faults", "harness": "human", "problem": "allreduce", "backend": "pytorch"}
    head = {"Idempotency-Key": f"faults-{number}"}
    for _ in range(60):
        try:
            answer = client.call(
                f"{site}/api/v1/submissions", token, {**about, "source": source}, head
            )
            return str(answer["runs"][0]["id"])
        except (client.Refused, client.NoAnswer):
            time.sleep(0.5)
    raise SystemExit("a submission was never taken")


def state_of(site: str, token: str, run: str) -> dict[str, Any]:
    try:
        return dict(client.call(f"{site}/api/v1/runs/{run}", token))
    except (client.Refused, client.NoAnswer):
        return {"status": "", "phase": "", "verdict": None}


def kill_worker_in(site: str, token: str, run: str, phase: str) -> str:
    """Kill the worker once the run is in that phase; say in which it was."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = state_of(site, token, run)
        if found["status"] not in ("queued", "running", "") or phase in str(found["phase"]):
            break
        time.sleep(0.02)
    record = processes.find(services.WORKER)
    assert record
    os.kill(record.pid, signal.SIGKILL)
    services.start_worker(site)
    return str(found["phase"] or found["status"])


def kill_site(site: str, *, master: bool) -> None:
    record = processes.find(services.SITE)
    assert record
    if not master:
        children = Path(f"/proc/{record.pid}/task/{record.pid}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGKILL)
        return
    os.kill(record.pid, signal.SIGKILL)
    time.sleep(2)  # gunicorn's workers notice that they have no master
    assert services.start_site()[0] == site


def main() -> None:
    up()
    site, _ = services.start_site()
    token = services.token(site, "submit")
    readers = Readers(site)
    for thread in readers.threads:
        thread.start()
    runs, killed_in = [], []
    for number, phase in enumerate(PHASES * 2):
        runs.append(submit(site, token, number))
        killed_in.append(kill_worker_in(site, token, runs[-1], phase))
        kill_site(site, master=number in {3, 7})
        runs.append(submit(site, token, 100 + number))
    for thread in readers.threads:
        thread.join()
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        ended = [state_of(site, token, run) for run in runs]
        if all(one["status"] not in ("queued", "running", "") for one in ended):
            break
        time.sleep(1)
    verdicts = collections.Counter(str(one["verdict"] or one["status"]) for one in ended)
    found = {
        "answers": dict(readers.statuses),
        "worker killed in": killed_in,
        "runs": dict(verdicts),
        "tries": sorted(int(one.get("tries") or 0) for one in ended),
    }
    sys.stdout.write(json.dumps(found, indent=1) + "\n")
    if "500" in readers.statuses or set(verdicts) != {"ok"}:
        raise SystemExit(f"see {places.logs()}")


if __name__ == "__main__":
    main()
