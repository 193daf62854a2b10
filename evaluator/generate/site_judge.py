"""Has kernels judged by a site while a model waits, as practice runs, which it counts nowhere.

Of what the site answers, only what feedback.py says passes to the model. Whatever is asked is asked
under a key that is made of it, so a run that is gone on with finds what it asked before.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from evaluator.client.credentials import checked_token, is_in_clear, normal
from evaluator.client.failures import Failure, Misused, Refused
from evaluator.client.packing import digest_of
from evaluator.client.submitting import ADDRESS
from evaluator.client.transport import Answer, SiteAddress
from evaluator.client.watching import ENDED, POLL_S, address
from evaluator.evaluate import Cancelled
from evaluator.generate.exchange import Misconfigured
from evaluator.generate.judging import TRIES, Practice, Revision
from evaluator.messages.codec import decode
from evaluator.messages.faults import EvaluatorError
from evaluator.messages.feedback import Feedback, feedback, not_judged
from evaluator.messages.report import Report, Verdict

# What the site refuses of a kernel, by the code of its answer; all else it refuses is our fault.
FAULTS_OF_KERNELS = {"no_entry_point": Verdict.MISSING_ENTRY_POINT}
LONGEST_PAUSE_S = 60.0
SILENCE_S = 2 * 3600.0  # of a site that is away, or says that we are to wait
QUEUED_S = 6 * 3600.0
DECLINED_S = 300.0  # another host may be free by then
ENVIRONMENT = "/environment.json"
MODEL_CHARS = 80


def versions_told(url: str, hardware: str) -> dict[str, str] | None:
    """Return the versions with which hosts of a class judge; None of a site that says none."""
    try:
        told = site_of(url, None).get(ENVIRONMENT, is_patient=False).json()["environments"]
        versions = next(row["versions"] for row in told if row["hardware"] == hardware)
        return {str(name): str(value) for name, value in versions.items()}
    except (Failure, StopIteration, LookupError, TypeError, AttributeError):
        return None


def site_of(url: str, token: str | None) -> SiteAddress:
    """Return a site. Raises ValueError for what is no address or no token, and where the token
    would travel unencrypted."""
    try:
        site = SiteAddress(normal(url), checked_token(token))
    except Misused as wrong:
        raise ValueError(f"{wrong.message} {wrong.fix}") from None
    if is_in_clear(site.url):
        raise ValueError(f"{site.url} is not encrypted: whoever is on the way can read the token")
    return site


@dataclass(frozen=True, kw_only=True)
class SiteJudge:
    """Judges on the hosts of a site. `about` holds the fields of a submission that are the run's,
    `run` tells it from all others."""

    site: SiteAddress
    about: Mapping[str, str]
    run: str
    is_over: Callable[[], bool]
    sleep: Callable[[float], None] = time.sleep

    def judge(self, practice: Practice, revision: Revision) -> tuple[Feedback, float]:
        """Return the feedback and the seconds that the judge took; see Judge. Raises Misconfigured
        where the site does not take the token."""
        try:
            return self._judge(self._fields(practice, revision))
        except Refused as refusal:
            if refusal.http_status in (401, 403):
                raise Misconfigured(f"the site: {refusal.message} {refusal.fix}") from None
            verdict = FAULTS_OF_KERNELS.get(refusal.code)
            if verdict is not None:
                return not_judged(verdict, refusal.message), 0.0
            raise EvaluatorError(f"the site refuses: {refusal.message} {refusal.fix}") from None
        except Failure as failure:
            raise EvaluatorError(f"the site: {failure.message}") from None
        except (KeyError, TypeError, ValueError) as error:
            raise EvaluatorError(f"the site answered with something unknown: {error!r}") from None

    def _fields(self, practice: Practice, revision: Revision) -> dict[str, Any]:
        return {
            **self.about,
            "practice": True,
            "problem": practice.problem,
            "backend": str(practice.backend),
            "source": revision.source,
            "device": str(practice.device),
            "world_size": practice.world_size,
            "size": practice.size,
            "dtype": str(practice.dtype),
            "placement": str(practice.placement),
            "notes": f"Attempt {revision.attempt}, step {revision.step} of a run that goes on.",
        }

    def _judge(self, fields: dict[str, Any]) -> tuple[Feedback, float]:
        """Submit until the site has judged it; a session tries what is not the kernel's fault
        again as often as others do."""
        body, number, fresh = json.dumps(fields).encode(), 0, 0
        while True:
            number += 1
            key = digest_of({**fields, "run": self.run, "try": number})
            headers = {"Content-Type": "application/json", "Idempotency-Key": key}
            accepted = self._ask(lambda: self.site.post(ADDRESS, body, headers))  # noqa: B023
            (queued,) = accepted.json()["runs"]
            run = self._ended(queued["id"])
            if run["status"] == "done":
                return self._feedback(run), _seconds(run)
            if lacking := _lacking(run):
                with contextlib.suppress(Failure):
                    self.site.post(f"{address(run['id'])}/cancel", b"", {})
                return not_judged(Verdict.HOST_UNSUPPORTED, lacking), 0.0
            fresh += accepted.status == 201
            if fresh == TRIES:
                raise EvaluatorError(f"the site could not judge a kernel: {run['message']}")

    def _ended(self, run: str) -> dict[str, Any]:
        """Return a run when it has ended, or waits for a host that there is not."""
        etag: str | None = None
        until_s = time.monotonic() + QUEUED_S
        while time.monotonic() < until_s:
            answer = self._ask(lambda: self._read(address(run), etag))  # noqa: B023
            if answer.status != 304:
                etag, found = answer.etag, dict(answer.json())
                if found["status"] in ENDED or _lacking(found):
                    return found
            self._pause(POLL_S)
        raise EvaluatorError("the site has not judged a kernel for hours")

    def _feedback(self, run: Mapping[str, Any]) -> Feedback:
        report = self._ask(lambda: self._read(f"{address(run['id'])}/report")).json()
        return feedback(decode(Report, report, "report"))

    def _read(self, path: str, etag: str | None = None) -> Answer:
        return self.site.get(path, etag=etag, is_patient=False)

    def _ask(self, call: Callable[[], Answer]) -> Answer:
        """Return what a call answers, again and again where the site is away or full. Raises what
        it fails with at last, and Cancelled."""
        until_s, pause_s = time.monotonic() + SILENCE_S, 1.0
        while True:
            if self.is_over():
                raise Cancelled
            try:
                return call()
            except Failure as failure:
                wait_s = failure.retry_after_s or pause_s
                if not failure.is_passing or time.monotonic() + wait_s > until_s:
                    raise
            self._pause(wait_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _pause(self, seconds: float) -> None:
        """Wait, in parts, so that an end of the run is seen."""
        while seconds > 0 and not self.is_over():
            self.sleep(min(seconds, 1.0))
            seconds -= 1.0


def _lacking(run: Mapping[str, Any]) -> str | None:
    """Return what a waiting run's kernel needs that hosts lack; None where it only waits."""
    if run["status"] != "queued":
        return None
    if run["waits_for"]:
        return str(run["waits_for"])
    is_left = run["declines"] and run["waiting_s"] > DECLINED_S
    return str(run["declines"][0]["reason"]) if is_left else None


def _seconds(run: Mapping[str, Any]) -> float:
    began, ended = (datetime.fromisoformat(run[name]) for name in ("started_at", "finished_at"))
    return round((ended - began).total_seconds(), 3)
