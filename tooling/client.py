"""Talk to a site's public API, over the transport of `pkb`."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from evaluator.client import failures, transport
from tooling import places
from tooling.console import Failure

REQUEST_TIMEOUT_S = 10.0
FINAL_STATES = ("done", "failed", "cancelled")


class NoAnswer(Failure):
    """Raised where the site cannot be reached (yet)."""


class Refused(Failure):
    """Raised where the site answered with an error."""

    def __init__(self, what: str, status: int, text: str) -> None:
        super().__init__(f"{what} answered {status}: {text}")
        self.status = status


def call(
    url: str,
    token: str | None = None,
    body: Mapping[str, object] | None = None,
    headers: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Send a GET, or a POST where there is a body, and return the JSON of the answer.

    Raises Refused or NoAnswer.
    """
    request = urllib.request.Request(url, headers={"Accept": "application/json", **(headers or {})})
    if token is not None:
        request.add_header("Authorization", f"Bearer {token}")
    if body is not None:
        request.data = json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
    what = f"{request.get_method()} {url}"
    try:
        return dict(transport.send(request, transport.DIRECT, REQUEST_TIMEOUT_S).json())
    except failures.Refused as refused:
        raise Refused(what, refused.http_status, f"{refused.message} {refused.fix}") from None
    except failures.NoAnswer as error:
        raise NoAnswer(f"{what}: {error.message}") from None


def wait_until(what: str, condition: Callable[[], str | None], timeout_s: float) -> str:
    """Ask every 0.2 s until the answer is not None; raises Failure after `timeout_s`."""
    deadline_s = time.monotonic() + timeout_s
    last = ""
    while time.monotonic() < deadline_s:
        try:
            if (answer := condition()) is not None:
                return answer
        except NoAnswer as error:
            last = f" ({error})"
        time.sleep(0.2)
    raise Failure(f"{what} was not ready after {timeout_s:.0f} s{last}; logs: {places.logs()}")


def follow(site: str, run_id: str, token: str, timeout_s: float) -> dict[str, Any]:
    """Wait for the end of a run and return it; raises Failure when it takes longer."""
    deadline_s = time.monotonic() + timeout_s
    while time.monotonic() < deadline_s:
        run = call(f"{site}/api/v1/runs/{run_id}", token)
        if run["status"] in FINAL_STATES:
            return run
        time.sleep(0.5)
    address = f"{site}/runs/{run_id}"
    raise Failure(f"run {run_id} is still {run['status']} after {timeout_s:.0f} s: {address}")
