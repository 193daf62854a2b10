"""Does to one's own submission what its owner may: publish, withdraw, have it judged again."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

from .console import say, say_json
from .credentials import site_called
from .failures import OK

JSON = {"Content-Type": "application/json"}


def publish(arguments: Namespace) -> int:
    """Make a hidden submission public, before its embargo ends by itself."""
    return _say_submission(_sent(arguments, {}), as_json=arguments.json)


def withdraw(arguments: Namespace) -> int:
    """Take a submission out of every ranking, for good."""
    told = {"reason": arguments.reason} if arguments.reason else {}
    return _say_submission(_sent(arguments, told), as_json=arguments.json)


def rerun(arguments: Namespace) -> int:
    """Queue again what is stale or ended without a result."""
    found = _sent(arguments, {})
    if arguments.json:
        say_json(found)
        return OK
    say(f"queued runs: {found['runs']}")
    for why, numbers in found["left_out"].items():
        say(f"  not {', '.join(map(str, numbers))}: {why}")
    return OK


def _sent(arguments: Namespace, body: dict[str, str]) -> dict[str, Any]:
    address = f"/api/v1/submissions/{arguments.submission}/{arguments.command}"
    answer = site_called(arguments.site).post(address, json.dumps(body).encode(), JSON)
    return dict(answer.json())


def _say_submission(found: dict[str, Any], *, as_json: bool) -> int:
    if as_json:
        say_json(found)
    else:
        say(f"submission {found['id']}: {found['visibility']}, {found['moderation']}")
    return OK
