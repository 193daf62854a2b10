"""Reads what an archive of attempts, `pkb-attempts/1`, tells of how its kernels were made.

docs/generate.md describes the format, which any harness may write. A file of it that does not fit
is a fault of the request, named with its line; fields that are not of the format are passed over.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from leaderboard.kit.json_types import JsonDict
from leaderboard.kit.request_error import RequestError
from leaderboard.models.generation_usage import (
    MAX_ENDED,
    MAX_TRANSCRIPT_BYTES,
    MAX_WALL_S,
    unpacked,
)
from leaderboard.models.submissions import MAX_COST_USD
from leaderboard.submissions import usage_values
from leaderboard.submissions.archives import ATTEMPTS, LIMITS, MANIFEST, TRANSCRIPTS, Member, shown

FORMAT = "pkb-attempts/1"
MAX_LINES = 20_000
MAX_NAME = 300
MAX_UNPACKED_BYTES = 512 << 20
# Problem, attempt, step; a transcript is of the first two.
Place = tuple[int, int, int]
_FIX = "Mend it, or leave it out: docs/generate.md describes the format."
_TRANSCRIPT = re.compile(r"transcripts/([1-9]\d{0,3})/([1-9]\d{0,2})\.jsonl\.gz", re.ASCII)
_BROKEN = (gzip.BadGzipFile, zlib.error, EOFError, OSError)
_NAMED = 5
_PLACE = ("problem", "attempt", "step")


@dataclass(frozen=True, kw_only=True)
class AttemptLine:
    """Holds a line of attempts.jsonl: columns of a Making, the digest of its kernel, and what that
    was called in the tree that it was converted from."""

    number: int
    sha256: str | None
    columns: Mapping[str, Any]
    converted_from: str = ""


@dataclass(frozen=True, kw_only=True)
class PackedTranscript:
    """Names a transcript, packed as it came; `size_bytes` is that of its text."""

    member: Member
    sha256: str
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class Told:
    """Holds what is told of how kernels were made. `notes` name what was not read."""

    manifest: JsonDict = field(default_factory=dict)
    lines: Mapping[Place, AttemptLine] = field(default_factory=dict)
    transcripts: Mapping[tuple[int, int], PackedTranscript] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Return a SHA-256 of all of it; empty where nothing is told."""
        if not (self.manifest or self.lines or self.transcripts):
            return ""
        lines = [(place, line.sha256, dict(line.columns)) for place, line in self.lines.items()]
        before = [(at, line.converted_from) for at, line in self.lines.items()]
        packed = {str(place): one.sha256 for place, one in self.transcripts.items()}
        # Left out where nothing says it, as in the digests of requests from before it existed.
        named = [before] if any(name for _, name in before) else []
        text = json.dumps([self.manifest, lines, packed, *named], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


NOTHING = Told()


def told_by(members: Sequence[Member]) -> Told:
    """Return what these companions of kernels tell. Raises RequestError."""
    manifests = [m for m in members if m.path.name == MANIFEST and _is_ours(m.data)]
    if not manifests:
        others = [member for member in members if member.path.name != MANIFEST]
        return Told(notes=_unread(others, f"no {MANIFEST} says that it is {FORMAT}"))
    if len(manifests) > 1:
        raise _fault(shown(str(manifests[1].path)), "is a second manifest.")
    root = manifests[0].path.parent
    own = {str(m.path.relative_to(root)): m for m in members if m.path.is_relative_to(root)}
    lines = own.get(ATTEMPTS)
    found = {
        (int(n[1]), int(n[2])): own[name] for name in own if (n := _TRANSCRIPT.fullmatch(name))
    }
    read = {one.path for one in (manifests[0], lines, *found.values()) if one}
    others = [member for member in members if member.path not in read]
    return Told(
        manifest=_manifest(manifests[0]),
        lines=dict(_lines(lines)) if lines else {},
        transcripts=_transcripts(found),
        notes=_unread(others, f"{FORMAT} has no such files"),
    )


def _is_ours(data: bytes) -> bool:
    """Return whether a manifest is of this format, or of another version of it."""
    return re.search(rb'"format"\s*:\s*"pkb-attempts/', data) is not None


def _unread(members: Sequence[Member], why: str) -> tuple[str, ...]:
    names = [shown(str(member.path)) for member in members]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return (f"Not read, as {why}: {', '.join(names[:_NAMED])}{more}.",) if names else ()


def _manifest(member: Member) -> JsonDict:
    where = shown(str(member.path))
    given = _object(_whole(member, LIMITS[MANIFEST]), where)
    if given.get("format") != FORMAT:
        raise _fault(
            where,
            f"has the format {usage_values.said(given.get('format'))}; this site reads {FORMAT}.",
        )
    told = {name: _checked(given, name, check, where) for name, check in _MANIFEST.items()}
    return {name: _without_nulls(value) for name, value in told.items() if value is not None}


def _without_nulls(value: Any) -> Any:
    """Return an object without what it does not tell; anything else as it is."""
    if not isinstance(value, dict):
        return value
    return {name: part for name, part in value.items() if part is not None}


def _lines(member: Member) -> Iterator[tuple[Place, AttemptLine]]:
    name, seen = shown(str(member.path)), dict[Place, int]()
    for number, text in enumerate(_whole(member, LIMITS[ATTEMPTS]).split(b"\n"), start=1):
        if not text.strip():
            continue
        where = f"{name}, line {number}"
        given = _object(text, where)
        number_of, attempt, step = (_needed(given, part, where) for part in _PLACE)
        place = (number_of, attempt, step)
        if place in seen:
            raise _fault(where, f"is of the same step as line {seen[place]}.")
        seen[place] = number
        usage = given.get("usage") or {}
        if not isinstance(usage, dict):
            raise _fault(where, "has a usage that is no object.")
        columns = {
            **{
                f"{kind}_tokens": _checked(usage, kind, usage_values.count, where)
                for kind in _USAGE
            },
            **{one: _checked(given, one, check, where) for one, check in _LINE.items()},
        }
        columns["ended"] = columns["ended"] or ""
        sha256 = _checked(given, "sha256", usage_values.sha256, where)
        was = _checked(given, "converted_from", usage_values.text(MAX_NAME), where) or ""
        yield place, AttemptLine(number=number, sha256=sha256, columns=columns, converted_from=was)


def _transcripts(
    found: Mapping[tuple[int, int], Member],
) -> dict[tuple[int, int], PackedTranscript]:
    made, total = {}, 0
    for place, member in found.items():
        made[place] = one = _transcript(member)
        total += one.size_bytes
        if total > MAX_UNPACKED_BYTES:
            most = f"{MAX_UNPACKED_BYTES >> 20} MiB"
            where = shown(str(member.path))
            raise _fault(where, f"and those before it unpack to more than {most}.", 413)
    return made


def _transcript(member: Member) -> PackedTranscript:
    where, packed = shown(str(member.path)), _whole(member, LIMITS[TRANSCRIPTS])
    try:
        text = unpacked(packed, MAX_TRANSCRIPT_BYTES)
    except _BROKEN:
        raise _fault(where, "is not packed by gzip, or damaged.") from None
    if len(text) > MAX_TRANSCRIPT_BYTES:
        raise _fault(where, f"unpacks to more than {MAX_TRANSCRIPT_BYTES >> 20} MiB.", 413)
    if text.count(b"\n") > MAX_LINES:
        raise _fault(where, f"has more than {MAX_LINES} lines.", 413)
    digest = hashlib.sha256(packed).hexdigest()
    return PackedTranscript(member=member, sha256=digest, size_bytes=len(text))


def _whole(member: Member, most: int) -> bytes:
    data = member.data
    if len(data) > most:
        raise _fault(shown(str(member.path)), f"is larger than {most >> 10} KiB.", 413)
    return data


def _object(text: bytes, where: str) -> JsonDict:
    try:
        value = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise _fault(where, f"is not JSON: {shown(str(error))}.") from None
    if not isinstance(value, dict):
        raise _fault(where, "is not a JSON object.")
    return value


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number")


def _needed(given: JsonDict, name: str, where: str) -> int:
    value = _checked(given, name, usage_values.count, where)
    if value is None:
        raise _fault(where, f"has no {name}.")
    return int(value)


def _checked(given: JsonDict, name: str, check: usage_values.Check, where: str) -> Any:
    """Return a value that is there and fits; None for one that is not told."""
    value = given.get(name)
    if value is None:
        return None
    if wanted := check(value):
        raise _fault(where, f"{name} is {usage_values.said(value)}, not {wanted}.")
    return value


_MANIFEST: Mapping[str, usage_values.Check] = {
    **dict.fromkeys(
        ("model", "provider", "harness", "harness_version", "recipe"),
        usage_values.text(usage_values.MAX_TEXT),
    ),
    "prompt_sha256": usage_values.sha256,
    **dict.fromkeys(("sampling", "budget", "prices"), usage_values.plain_object),
    "prices_date": usage_values.day,
}
_USAGE = ("input", "cached", "output", "reasoning")
_LINE: Mapping[str, usage_values.Check] = {
    **dict.fromkeys(("answers", "answers_without_usage", "judge_runs"), usage_values.count),
    "cost_usd": usage_values.amount(MAX_COST_USD),
    "wall_s": usage_values.amount(MAX_WALL_S),
    "ended": usage_values.text(MAX_ENDED),
}


def _fault(where: str, says: str, status: int = 400) -> RequestError:
    code = "too_large" if status == 413 else "bad_attempts"
    fields = {"archive": f"{where}: {says}"}
    return RequestError(code, f"{where}: {says}", _FIX, status=status, fields=fields)
