"""Sends an archive in parts, where it is larger than one request may be."""

from __future__ import annotations

import hashlib
import json

from .console import note
from .failures import NoAnswer, Refused
from .transport import SiteAddress, segment

ADDRESS = "/api/v1/uploads"
# Another command may send the same archive at the same time, or the upload may have expired.
MOST_TRIES = 8
_OUT_OF_STEP = ("wrong_offset", "unknown_upload")


def uploaded(site: SiteAddress, archive: bytes) -> str:
    """Send what the site does not have yet of an archive; return the id of its upload. Raises
    Refused or NoAnswer."""
    digest = hashlib.sha256(archive).hexdigest()
    body = json.dumps({"size_bytes": len(archive), "sha256": digest}).encode()
    for left in reversed(range(MOST_TRIES)):
        answer = site.post(ADDRESS, body, {"Content-Type": "application/json"}, is_patient=True)
        told = answer.json()
        try:
            found = str(told["id"])
            start, most = int(told["stored_bytes"]), int(told["part_bytes"])
        except (KeyError, TypeError, ValueError):
            raise NoAnswer("the site answered with something that is no upload") from None
        try:
            _send_from(site, found, archive, start, max(1, most))
        except Refused as failure:
            if failure.code not in _OUT_OF_STEP or not left:
                raise
        else:
            return found
    raise AssertionError  # the last try returns or raises


def _send_from(site: SiteAddress, upload: str, archive: bytes, start: int, most: int) -> None:
    for offset in range(max(0, start), len(archive), most):
        part = archive[offset : offset + most]
        site.put(f"{ADDRESS}/{segment(upload)}?offset={offset}", part)
        done = offset + len(part)
        note(f"sent {done >> 20} of {len(archive) >> 20} MiB")
