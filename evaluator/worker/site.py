"""Speaks the site's worker API for a judging host: plain HTTP with a narrow token, no database."""

from __future__ import annotations

import json
import logging
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evaluator.messages.codec import decode, encode
from evaluator.messages.faults import EvaluatorError
from evaluator.messages.job import Job
from evaluator.messages.report import Progress, Report
from evaluator.sandbox.paths import neutral

logger = logging.getLogger(__name__)

SERVING = "serving"
TIMEOUT_S = 20.0
RETRY_PAUSES_S = (1, 2, 5, 10, 20, 30, 60, 60, 60, 60)


class LeaseLost(Exception):
    """Says why the site lets this host not have a run, or no longer: drop everything."""


class RefusedBySite(EvaluatorError):
    """Says that the request itself is wrong, as the site sees it: asking again would not help."""


@dataclass(frozen=True, kw_only=True)
class Lease:
    """Holds the right to report on one run until the site hears nothing for a while."""

    run_id: str
    token: str
    heartbeat_s: float
    job: Job


@dataclass(frozen=True, kw_only=True)
class Welcome:
    """Holds what the site answers to a hello: after how many seconds to say it again, and whether
    this host is `serving`, `drained` (it finishes what it has) or `disabled`."""

    again_s: float
    state: str


@dataclass(frozen=True, kw_only=True)
class Site:
    """Speaks to the site at `url` with a worker token."""

    url: str
    token: str

    def hello(self, host: Mapping[str, object]) -> Welcome:
        """Say that this host is alive."""
        answer = self._post("hello", dict(host))
        state = str(answer.get("state", SERVING))
        return Welcome(again_s=float(answer["poll_s"]), state=state)

    def claim(self, run_id: str, host: Mapping[str, object]) -> Lease | None:
        """Return the run's job under a lease, or None where it is not to be had."""
        try:
            answer = self._post(f"runs/{run_id}/claim", dict(host))
        except LeaseLost as why:
            logger.info("run %s is not to be had: %s", run_id, why)
            return None
        return Lease(
            run_id=run_id,
            token=str(answer["lease_token"]),
            heartbeat_s=float(answer["heartbeat_s"]),
            job=decode(Job, answer["job"], "job"),
        )

    def heartbeat(self, lease: Lease, progress: Progress) -> bool:
        """Keep the lease and tell where the run is; True when the run is to be cancelled."""
        answer = self._lease_post(lease, "heartbeat", {"progress": encode(progress)})
        return bool(answer["cancel"])

    def finish(self, lease: Lease, report: Report) -> None:
        """Send the report. Raises LeaseLost where the run is no longer this host's."""
        self._retried(lease, "finish", {"report": encode(report)})

    def fail(self, lease: Lease, error: str) -> None:
        """Give the run back: the fault was this host's or ours."""
        self._retried(lease, "fail", {"error": neutral(error)[-4000:]})

    def _retried(self, lease: Lease, action: str, body: dict[str, object]) -> None:
        """Try for some minutes: a result is not lost to a site that restarts."""
        for pause_s in RETRY_PAUSES_S:
            try:
                self._lease_post(lease, action, body)
                return
            except RefusedBySite:
                raise
            except EvaluatorError:
                time.sleep(pause_s)
        self._lease_post(lease, action, body)

    def _lease_post(self, lease: Lease, action: str, body: dict[str, object]) -> dict[str, Any]:
        return self._post(f"runs/{lease.run_id}/{action}", {"lease_token": lease.token, **body})

    def _post(self, path: str, body: dict[str, object]) -> dict[str, Any]:
        """Raises LeaseLost on 409, Refused on other 4xx, EvaluatorError on every other failure."""
        request = urllib.request.Request(
            f"{self.url.rstrip('/')}/api/v1/worker/{path}",
            data=json.dumps(body).encode(),
            headers={
                "Authorization": f"Bearer {self.token}",
                "Content-Type": "application/json",
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
                answer: dict[str, Any] = json.load(response)
                return answer
        except urllib.error.HTTPError as error:
            detail = error.read(2000).decode(errors="replace")
            if error.code == 409:
                raise LeaseLost(detail) from None
            kind = RefusedBySite if 400 <= error.code < 500 else EvaluatorError
            raise kind(f"the site answered {error.code} to {path}: {detail}") from None
        except (OSError, ValueError) as error:
            raise EvaluatorError(f"the site at {self.url} cannot be reached: {error}") from None
