"""Does to one's own submission what its owner may: publish, edit, withdraw, have it judged
again."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

from .console import say, say_json
from .credentials import site_called
from .failures import OK, Misused
from .submitting import ADDRESS

JSON = {"Content-Type": "application/json"}
EDITABLE = ("visibility", "public_from", "licence", "step_budget", "cost_usd", "link", "notes")
# What the site calls one that is not told; notes are any text, so they have no word for it.
NONE = "none"
_UNTOLD = {"public_from": None, "step_budget": None, "cost_usd": None, "licence": "", "link": ""}


def publish(arguments: Namespace) -> int:
    """Make a hidden submission public, before its embargo ends by itself; or its source, which it
    withholds, whether it is public or not."""
    if arguments.source:
        found = _changed(arguments, {"withholds_source": False})
    else:
        found = _sent(arguments, {})
    return _say_submission(found, as_json=arguments.json)


def edit(arguments: Namespace) -> int:
    """Change what a submission says of itself; what is not named stays. Raises Misused."""
    given = {name: getattr(arguments, name) for name in EDITABLE}
    values = {name: _value(name, text) for name, text in given.items() if text is not None}
    if not values:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in EDITABLE)
        raise Misused("Nothing is to be changed.", f"Give some of {flags}.")
    return _say_submission(_changed(arguments, values), as_json=arguments.json)


def _value(name: str, text: str) -> str | None:
    """Return what a flag says, as the site takes it."""
    return _UNTOLD[name] if text == NONE and name in _UNTOLD else text


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
    address = f"{ADDRESS}/{arguments.submission}/{arguments.command}"
    answer = site_called(arguments.site).post(address, json.dumps(body).encode(), JSON)
    return dict(answer.json())


def _changed(arguments: Namespace, values: dict[str, Any]) -> dict[str, Any]:
    address = f"{ADDRESS}/{arguments.submission}"
    answer = site_called(arguments.site).patch(address, json.dumps(values).encode(), JSON)
    return dict(answer.json())


def _say_submission(found: dict[str, Any], *, as_json: bool) -> int:
    if as_json:
        say_json(found)
    else:
        more = ", source withheld" if found["withholds_source"] else ""
        say(f"submission {found['id']}: {found['visibility']}, {found['moderation']}{more}")
    return OK
