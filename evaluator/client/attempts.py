"""Writes archives of attempts, `pkb-attempts/1`: docs/generate.md describes the format."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from .catalogue import Problem
from .packing import compressed, packed

FORMAT = "pkb-attempts/1"
MAX_TRANSCRIPT_BYTES = 1 << 20
MAX_TEXT_CHARS = 48 << 10
SHORTEST_CHARS = 256
HIDDEN = "***"
LEAST_KEY_CHARS = 12
# What the keys of well-known services look like.
_KEY = re.compile(r"\b(?:sk-|tgp_v1_|AIza|hf_|gsk_|xai-|ghp_)[\w-]{16,}", re.ASCII)
_MANIFEST = (
    *("model", "provider", "harness", "harness_version", "recipe", "prompt_sha256", "sampling"),
    *("backend", "hardware", "world_size", "size", "dtype", "judge", "budget", "prices"),
    "prices_date",
)


class Used(NamedTuple):
    """Says what an attempt took; None where its harness does not tell."""

    usage: dict[str, int] | None = None
    answers: int | None = None
    answers_without_usage: int | None = None
    cost_usd: float | None = None
    wall_s: float | None = None
    finish: str | None = None
    served_by: str | None = None


class Attempt(NamedTuple):
    """Holds an attempt with its last kernel; an empty source where it made none. `converted_from`
    is what the kernel was called in a tree, with the name of that: a site knows by it which were
    written for an older task."""

    problem: Problem
    number: int
    backend: str
    source: bytes
    ended: str | None
    used: Used = Used()
    prompt: str | None = None
    messages: Sequence[Mapping[str, Any]] = ()
    converted_from: str | None = None
    # What must not stand in any text of it.
    secrets: tuple[str, ...] = ()


def archive(attempts: Sequence[Attempt], told: Mapping[str, Any]) -> bytes:
    """Return the archive; `told` are those values of its manifest that are known."""
    manifest = {"format": FORMAT, **{name: told.get(name) for name in _MANIFEST}}
    files = {"manifest.json": (json.dumps(manifest, indent=1, sort_keys=True) + "\n").encode()}
    lines = []
    for each in sorted(attempts, key=lambda one: (one.problem.number, one.number)):
        prompt = None if each.prompt is None else scrubbed(each.prompt, each.secrets).encode()
        digest = None if prompt is None else hashlib.sha256(prompt).hexdigest()
        if prompt is not None:
            files[f"prompts/{digest}.md"] = prompt
        folder = f"kernels/{each.problem.folder}/attempt_{each.number}"
        files[f"{folder}/step_01_{each.backend}.py"] = each.source
        if each.messages:
            name = f"transcripts/{each.problem.number}/{each.number}.jsonl.gz"
            said = transcript(each.messages, partial(scrubbed, secrets=each.secrets))
            files[name] = compressed(said)
        lines.append(json.dumps(_line(each, digest), sort_keys=True) + "\n")
    files["attempts.jsonl"] = "".join(lines).encode()
    return packed(files)


def _line(one: Attempt, prompt_sha256: str | None) -> dict[str, Any]:
    return {
        "problem": one.problem.number,
        "attempt": one.number,
        "step": 1,
        "sha256": hashlib.sha256(one.source).hexdigest(),
        "prompt_sha256": prompt_sha256,
        "ended": one.ended,
        "judge_runs": None,
        "converted_from": one.converted_from,
        **one.used._asdict(),
    }


def scrubbed(text: str, secrets: Sequence[str]) -> str:
    """Return a text without these secrets and without what looks like a key."""
    for secret in secrets:
        if len(secret) >= LEAST_KEY_CHARS:
            text = text.replace(secret, HIDDEN)
    return _KEY.sub(HIDDEN, text)


def transcript(messages: Sequence[Mapping[str, Any]], scrub: Callable[[str], str]) -> bytes:
    """Return a line a message, texts scrubbed and cut so that all of it fits."""
    most = MAX_TEXT_CHARS
    while True:
        lines = [json.dumps(_cut(each, scrub, most), sort_keys=True) for each in messages]
        whole = ("\n".join(lines) + "\n").encode()
        if len(whole) <= MAX_TRANSCRIPT_BYTES or most <= SHORTEST_CHARS:
            return whole[:MAX_TRANSCRIPT_BYTES].rpartition(b"\n")[0] + b"\n"
        most //= 2


def _cut(value: Any, scrub: Callable[[str], str], most: int) -> Any:
    if isinstance(value, str):
        text = scrub(value)
        rest = len(text) - most
        return text if rest <= 0 else f"{text[:most]}… ({rest} characters left out)"
    if isinstance(value, Mapping):
        return {name: _cut(each, scrub, most) for name, each in value.items()}
    return [_cut(each, scrub, most) for each in value] if isinstance(value, list) else value
