"""Follows runs until they end, also across lost connections."""

from __future__ import annotations

import re
import time
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from .console import note, say, say_json
from .credentials import site_called
from .failures import OK, WRONG_VERDICT, Misused, NoAnswer, Refused
from .transport import LONGEST_PAUSE_S, SiteAddress, segment

ENDED = ("done", "failed", "cancelled")
POLL_S = 2.0
SILENCE_S = 600.0
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def run_id(text: str) -> str:
    """Return the id of a run that is given so, or by its address. Raises Misused."""
    found = _ID.search(text.lower())
    if found is None:
        raise Misused(f"{text} is no run.", "Runs are named as in `pkb runs`, or by their page.")
    return found[0]


def address(run: str) -> str:
    return f"/api/v1/runs/{segment(run_id(run))}"


def watch(arguments: Namespace) -> int:
    """Follow runs to their verdicts."""
    return watch_all(site_called(arguments.site), arguments.runs, as_json=arguments.json)


def watch_all(site: SiteAddress, runs: Sequence[str], *, as_json: bool) -> int:
    """Follow runs one after the other, say how each ended; return 0 where all are `ok`."""
    ended = []
    for run in [run_id(each) for each in runs]:
        ended.append(follow(site, run))
        if not as_json:
            say_verdict(ended[-1])
    if as_json:
        say_json(ended[0] if len(ended) == 1 else ended)
    return OK if all(each.get("verdict") == "ok" for each in ended) else WRONG_VERDICT


def follow(site: SiteAddress, run: str) -> dict[str, Any]:
    """Return a run when it has ended, and note on the way where it is. A connection that is lost
    is taken up again, for ten minutes. Raises Refused or NoAnswer."""
    etag, said, heard_s = None, "", time.monotonic()
    while True:
        try:
            answer = site.get(address(run), etag=etag, is_patient=False)
        except (Refused, NoAnswer) as failure:
            if not failure.is_passing or time.monotonic() - heard_s > SILENCE_S:
                raise
            said = _noted(f"{failure.message}; asking again", said)
            time.sleep(min(failure.retry_after_s or 2 * POLL_S, LONGEST_PAUSE_S))
            continue
        heard_s = time.monotonic()
        if answer.status != 304:
            etag, found = answer.etag, dict(answer.json())
            if found["status"] in ENDED:
                return found
            said = _noted(f"{found['problem']}: {_where(found)}", said)
        time.sleep(POLL_S)


def _noted(text: str, before: str) -> str:
    if text != before:
        note(text)
    return text


def _where(run: dict[str, Any]) -> str:
    if run["status"] == "running":
        progress = run.get("progress") or {}
        return f"{run.get('phase')}, {progress.get('done')} of {progress.get('total')}"
    place = f"queued, place {run.get('queue_position')}"
    return "; ".join([place, *(run[name] for name in ("tried", "waits_for") if run.get(name))])


def say_verdict(run: dict[str, Any]) -> None:
    """Say how a run ended and why; a message tells the time of what is right."""
    say(f"{str(run.get('verdict') or run['status']).upper()}  {run['problem']}: {run['message']}")
    for name in ("cause", "evidence"):
        if run.get(name):
            say(f"  {name}: {run[name]}")
    if run.get("flags"):
        say(f"  flags: {', '.join(map(str, run['flags']))}")
    say(f"  {run['url']}")


def cancel(arguments: Namespace) -> int:
    """End a run that waits."""
    site = site_called(arguments.site)
    found = dict(site.post(f"{address(arguments.run)}/cancel", b"", {}).json())
    if arguments.json:
        say_json(found)
    else:
        say(f"{found['id']}: {found['status']}")
    return OK
