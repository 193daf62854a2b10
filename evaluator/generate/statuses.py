"""Says what an HTTP error of a server of chat completions means for an ask.

Servers word the same error differently: OpenAI, vLLM, SGLang, Groq, DeepSeek and Mistral are known.
"""

from __future__ import annotations

import re

from evaluator.generate.exchange import Failed, Misconfigured, Rejected, Unanswered

LIMIT_NAMES = ("max_tokens", "max_completion_tokens")
MOST_CHARS = 4000
# Fewer tokens hold no kernel: then the input is too long, not the limit too large.
LEAST_OUTPUT_TOKENS = 1024
_NUMBER = r"(\d{1,9})"
_CONTEXT = re.compile(rf"(?:context length|context window|context size)\D{{0,24}}{_NUMBER}")
_INPUT = re.compile(
    rf"{_NUMBER} (?:tokens )?(?:in the messages|in your prompt|from the input|input tokens)"
    rf"|prompt (?:contains|has) (?:at least )?{_NUMBER}"
)
# The most that a server writes at all, whatever it reads.
_MOST = re.compile(
    rf"(?:at most {_NUMBER} (?:completion|output) tokens|less than or equal to `?{_NUMBER}"
    rf"|range of max_(?:completion_)?tokens is \[\d{{1,9}}, ?{_NUMBER}\])"
)
_TOO_LONG = re.compile(
    r"context[_ ]length|context window|context size|(?:prompt|input) is too long|too many tokens"
)
_UNKNOWN = (
    *("unsupported", "not supported", "unrecognized", "not permitted", "unknown", "unexpected"),
    "extra inputs",
)
_REFUSED = ("content_policy", "content_filter", "safety")


def fault_of(status: int, said: str, detail: str, retry_after_s: float | None = None) -> Exception:
    """Return the exception that a status means; `said` are the server's words with its code,
    `detail` is what the exception says."""
    said = said[:MOST_CHARS].lower()
    if status in (408, 409, 429) or status >= 500:
        return Unanswered(detail, may_cost=status in (502, 504), retry_after_s=retry_after_s)
    if status in (400, 422) and (most := _number(_MOST, said)):
        return Misconfigured(f"{detail}: use --max-output-tokens {most}")
    if status == 413 or (status in (400, 422) and _TOO_LONG.search(said)):
        return Failed("context", detail)
    if status in (400, 422) and any(word in said for word in _REFUSED):
        return Failed("refused", detail)
    return Misconfigured(detail) if status in (401, 403, 404) else Rejected(detail)


def smaller_limit(status: int, said: str, asked: int) -> int | None:
    """Return the output tokens that fit beside the input, where input and output together were too
    long for the model; None where the input alone is."""
    said = said[:MOST_CHARS].lower()
    context, own = _number(_CONTEXT, said), _number(_INPUT, said)
    if status not in (400, 422) or context is None or own is None:
        return None
    fits = context - own
    return fits if LEAST_OUTPUT_TOKENS <= fits < asked else None


def other_limit_name(status: int, said: str, name: str) -> str | None:
    """Return the name that a server wants for the limit of output, where it refuses ours."""
    words = said[:MOST_CHARS].lower()
    is_refused = any(word in words for word in _UNKNOWN) and re.search(rf"\b{name}\b", words)
    if status not in (400, 422) or not is_refused:
        return None
    return next(each for each in LIMIT_NAMES if each != name)


def _number(pattern: re.Pattern[str], said: str) -> int | None:
    found = pattern.search(said)
    return int(next(filter(None, found.groups()))) if found else None
