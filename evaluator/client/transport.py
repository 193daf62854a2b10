"""Speaks HTTP with a site: bounded in time and size, patient where asking again may help."""

from __future__ import annotations

import email.utils
import http.client
import json
import math
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, Any
from urllib.parse import quote, urlencode

from .console import note
from .failures import Failure, NoAnswer, Refused

TIMEOUT_S = 60.0
WHOLE_ANSWER_S = 600.0
MAX_BYTES = 64 << 20
MAX_ERROR_BYTES = 64 << 10
CHUNK_BYTES = 64 << 10
PAUSES_S = (1.0, 2.0, 4.0, 8.0)
LONGEST_PAUSE_S = 120.0
PASSING = (502, 503, 504)
UNAUTHORIZED = 401
TOKEN_ENV = "PKB_TOKEN"


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows none: the token would go to whoever the answer names."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


USUAL = urllib.request.build_opener(_NoRedirects)
# Whatever proxy the environment names: for a site on this machine.
DIRECT = urllib.request.build_opener(_NoRedirects, urllib.request.ProxyHandler({}))


@dataclass(frozen=True)
class Answer:
    """Holds an answer; of status 304 it has no body."""

    status: int
    body: bytes
    etag: str | None = None

    def json(self) -> Any:
        """Return the body's value. Raises NoAnswer where it is no JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            raise NoAnswer("the site answered with something that is no JSON", _OTHER) from None


_OTHER = "Is this the address of a PKB leaderboard?"


@dataclass(frozen=True)
class SiteAddress:
    """Names a site, and the token that it is asked with."""

    url: str
    token: str | None = None
    # Where the token was found; None where it is being tried.
    token_from: str | None = None
    # Why the site took it no longer; what is public is read without it from then on.
    refused: list[str] = field(default_factory=list, compare=False)

    def get(
        self,
        path: str,
        query: Mapping[str, object] | None = None,
        *,
        etag: str | None = None,
        is_patient: bool = True,
    ) -> Answer:
        """Return the site's answer at a path. Raises Refused or NoAnswer.

        If the site refuses the token, the same is asked without it: most pages are public.
        """
        known = {name: str(value) for name, value in (query or {}).items() if value is not None}
        tail = f"?{urlencode(known)}" if known else ""
        request = self._request(f"{path}{tail}", None, {"If-None-Match": etag} if etag else {})
        try:
            return _asked(request, is_patient=is_patient)
        except Refused as failure:
            why = self._explained(failure)
            if why is failure or self.refused:
                raise why from None
        self.refused.append(why.fix)
        note(f"{why.fix} What is public is read without it.")
        return self.get(path, query, etag=etag, is_patient=is_patient)

    def post(
        self, path: str, body: bytes, headers: Mapping[str, str], *, is_patient: bool = False
    ) -> Answer:
        """Send a body. Only what may be sent twice may be sent patiently. Raises Refused or
        NoAnswer."""
        return self._sent(self._request(path, body, headers), is_patient=is_patient)

    def patch(self, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Send what changes something that is there. Raises Refused or NoAnswer."""
        return self._sent(self._request(path, body, headers, "PATCH"), is_patient=False)

    def put(self, path: str, body: bytes) -> Answer:
        """Send bytes that may be sent twice, patiently. Raises Refused or NoAnswer."""
        headers = {"Content-Type": "application/octet-stream"}
        return self._sent(self._request(path, body, headers, "PUT"), is_patient=True)

    def _sent(self, request: urllib.request.Request, *, is_patient: bool) -> Answer:
        try:
            return _asked(request, is_patient=is_patient)
        except Refused as failure:
            raise self._explained(failure) from None

    def _explained(self, failure: Refused) -> Refused:
        """Return a refusal that says where the token came from, if the token is why."""
        if self.refused:
            return failure.with_fix(self.refused[0])
        if self.token_from is None or failure.http_status != UNAUTHORIZED:
            return failure
        mend = f"`pkb login {self.url}` keeps a new one."
        if self.token_from == TOKEN_ENV:
            mend = f"Set it to one of {self.url}/account, or unset it."
        return failure.with_fix(f"The site refuses the token of {self.token_from}. {mend}")

    def _request(
        self,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        method: str | None = None,
    ) -> urllib.request.Request:
        made = urllib.request.Request(
            f"{self.url}{path}", data=body, headers=dict(headers), method=method
        )
        made.add_header("User-Agent", "pkb")
        if self.token is not None and not self.refused:
            made.add_header("Authorization", f"Bearer {self.token}")
        return made


def _asked(request: urllib.request.Request, *, is_patient: bool) -> Answer:
    for pause_s in PAUSES_S:
        try:
            return send(request)
        except (Refused, NoAnswer) as failure:
            wait_s = _wait_s(failure, pause_s)
            if wait_s is None or not is_patient:
                raise
            note(f"{failure.message}; asking again in {wait_s:.0f} s")
        time.sleep(wait_s)
    return send(request)


def segment(text: str) -> str:
    """Return a text as one segment of a path."""
    return quote(text, safe="")


def send(
    request: urllib.request.Request,
    opener: urllib.request.OpenerDirector = USUAL,
    timeout_s: float = TIMEOUT_S,
) -> Answer:
    """Ask once. Raises Refused where the answer is from 400 to 499, else NoAnswer."""
    try:
        with opener.open(request, timeout=timeout_s) as response:
            body = _read(response, MAX_BYTES)
            return Answer(response.status, body, response.headers.get("ETag"))
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 304:
                return Answer(304, b"", error.headers.get("ETag"))
            raise _failure(error) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise NoAnswer(f"no answer from {request.host}: {reason}") from None


def _read(response: Any, most: int) -> bytes:
    until_s = time.monotonic() + WHOLE_ANSWER_S
    parts, total = [], 0
    while chunk := response.read1(CHUNK_BYTES):
        parts.append(chunk)
        total += len(chunk)
        if total > most:
            raise NoAnswer(f"the answer is larger than {most >> 20} MiB", is_passing=False)
        if time.monotonic() > until_s:
            raise NoAnswer(f"the answer took longer than {WHOLE_ANSWER_S:.0f} s", is_passing=False)
    if response.length:
        raise NoAnswer("the answer was cut off")
    return b"".join(parts)


def _failure(error: urllib.error.HTTPError) -> Failure:
    told = _told(error)
    message = str(told.get("message") or f"the site answered {error.code} {error.reason}")
    fix = str(told.get("fix") or "")
    after_s = _seconds(error.headers.get("Retry-After"))
    if error.code < 400:
        where = error.headers.get("Location")
        fix = f"If you trust that address: pkb login {where}"
        return NoAnswer(f"the site sends elsewhere: {where}", fix, is_passing=False)
    if error.code >= 500:
        is_passing = error.code in PASSING
        return NoAnswer(message, fix, is_passing=is_passing, retry_after_s=after_s or 0)
    fields = told.get("fields")
    return Refused(
        message,
        fix or ("" if told else _OTHER),
        code=str(told.get("code") or f"http_{error.code}"),
        http_status=error.code,
        fields={str(k): str(v) for k, v in fields.items()} if isinstance(fields, dict) else {},
        retry_after_s=after_s,
    )


def _told(error: IO[bytes]) -> dict[str, Any]:
    """Return what an answer in the API's shape of errors says; nothing of any other."""
    try:
        told = json.loads(error.read(MAX_ERROR_BYTES))["error"]
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def _seconds(text: str | None) -> float | None:
    """Return the seconds that a `Retry-After` asks for, given as a number or a date."""
    try:
        seconds = float(text or "")
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(text or "").timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _wait_s(failure: Failure, pause_s: float) -> float | None:
    """Return how long to wait before the same is asked again; None where that would not help."""
    wait_s = pause_s if failure.retry_after_s is None else failure.retry_after_s
    return wait_s if failure.is_passing and wait_s <= LONGEST_PAUSE_S else None
