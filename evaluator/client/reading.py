"""Reads what a site knows: problems, runs, the leaderboard, two kernels side by side."""

from __future__ import annotations

import difflib
import re
import textwrap
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from .catalogue import problems as known_problems
from .console import say, say_json, say_table
from .credentials import site_called
from .failures import OK, Misused
from .transport import SiteAddress, segment
from .watching import address, run_id

MOST_KERNELS = 5
WIDTH = 92
# `kind` is `published` for a claim of a paper, `baseline` for what PKB brings, else empty.
BOARD_HEADS = (
    *("place", "model", "harness", "kind", "submission"),
    *("correct", "scored", "pass1", "fast1", "speedup"),
)
_DIGEST = re.compile(r"[0-9a-f]{64}")


def problems(arguments: Namespace) -> int:
    """List the problems."""
    rows = site_called(arguments.site).get("/api/v1/problems").json()
    if arguments.category:
        rows = [row for row in rows if row["category"] == arguments.category]
        if not rows:
            fix = "`pkb problems` lists them."
            raise Misused(f"There is no problem of category {arguments.category}.", fix)
    heads = ("number", "slug", "category", "scored", "title")
    return _listed(rows, heads, as_json=arguments.json)


def runs(arguments: Namespace) -> int:
    """List runs, newest first."""
    names = ("problem", "submission", "status", "verdict", "placement", "mine")
    query = {name: getattr(arguments, name) for name in names}
    site = site_called(arguments.site)
    page = site.get("/api/v1/runs", query).json()
    rows = list(page["results"])
    while page["next"] and len(rows) < arguments.limit:
        page = site.get("/api/v1/runs", {**query, "cursor": _cursor(page["next"])}).json()
        rows += page["results"]
    heads = ("id", "problem", "model", "submission", "attempt", "status", "verdict", "speedup")
    return _listed(rows[: arguments.limit], heads, as_json=arguments.json)


def _cursor(address: str) -> str:
    """Return the place in a list that the address of its next page names. The address itself is
    not asked: the token is for this site alone."""
    return parse_qs(urlsplit(address).query).get("cursor", [""])[0]


def board(arguments: Namespace) -> int:
    """Show the leaderboard, in the setting in which most was tried unless another is named."""
    names = ("category", "harness", "backend", "hardware", "ranks", "size", "dtype", "sort")
    query = {name: getattr(arguments, name) for name in names}
    site = site_called(arguments.site)
    if arguments.csv:
        say(site.get("/leaderboard.csv", query).body.decode(errors="replace").rstrip("\n"))
        return OK
    found = site.get("/api/v1/leaderboard", query).json()
    if arguments.json:
        say_json(found)
        return OK
    setting = found["setting"] or {}
    say(", ".join(f"{name} {value}" for name, value in setting.items()) or "nothing judged yet")
    rows = [{**row, "kind": _kind(row)} for row in found["rows"]]
    return _listed(rows, BOARD_HEADS, as_json=False)


def _kind(row: dict[str, Any]) -> str:
    """Say what a row of the board is, if it is no submission that was judged here."""
    if row.get("claimed"):
        return "published"
    return "baseline" if row.get("baseline") else ""


def logs(arguments: Namespace) -> int:
    """Print what the ranks of a run wrote."""
    site = site_called(arguments.site)
    told = site.get(f"{address(arguments.run)}/report").json()
    found = told.get("logs", [])
    if arguments.json:
        say_json(found)
        return OK
    if told.get("withheld"):
        say(f"{told['withheld']}, and so is what its ranks wrote")
    for log in found:
        who = "sandbox" if log["rank"] < 0 else f"rank {log['rank']}"
        say(f"--- {who}")
        say(str(log["text"]).rstrip("\n"))
    return OK


def report(arguments: Namespace) -> int:
    """Print the judge's whole report as JSON."""
    say_json(site_called(arguments.site).get(f"{address(arguments.run)}/report").json())
    return OK


def bundle(arguments: Namespace) -> int:
    """Write the ZIP that repeats a run."""
    run = run_id(arguments.run)
    data = site_called(arguments.site).get(f"/runs/{run}/bundle.zip").body
    place: Path = arguments.output
    path = place / f"pkb-run-{run[:8]}.zip" if place.is_dir() else place
    write_new(path, data)
    if arguments.json:
        say_json({"path": str(path), "bytes": len(data)})
    else:
        say(path)
    return OK


def write_new(path: Path, data: bytes) -> None:
    """Write a file that is not there yet. Raises Misused, or OSError."""
    try:
        with path.open("xb") as file:
            file.write(data)
    except FileExistsError:
        raise Misused(f"{path} is there already.", "Name another with -o, or remove it.") from None


def compare(arguments: Namespace) -> int:
    """Set two kernels side by side."""
    digests = ",".join(_digest(each) for each in arguments.kernels)
    site = site_called(arguments.site)
    found = site.get("/compare.json", {"kernels": digests}).json()["kernels"]
    if arguments.json:
        say_json(found)
        return OK
    rows = [[name, *(_text(each[name]) for each in found)] for name in found[0]]
    say_table(("", "A", "B"), rows)
    return OK


def _digest(text: str) -> str:
    found = _DIGEST.search(text.lower())
    if found is None:
        fix = "It is the SHA-256 of its source, or the address of its page."
        raise Misused(f"{text} is no kernel.", fix)
    return found[0]


def _text(value: object) -> object:
    return ", ".join(map(str, value)) if isinstance(value, list) else value


def diff(arguments: Namespace) -> int:
    """Show how two runs ended and in which lines their kernels differ."""
    site = site_called(arguments.site)
    found = [site.get(address(run)).json() for run in arguments.runs]
    old, new = (_source(site, run["kernel"]) for run in found)
    names = [f"{run['problem']} {run['id']}" for run in found]
    lines = list(difflib.unified_diff(old, new, names[0], names[1], lineterm=""))
    if arguments.json:
        say_json({"runs": found, "diff": lines})
        return OK
    for run in found:
        say(f"{run['id']}: {run['verdict'] or run['status']}: {run['message']}")
    for line in lines or ["the kernels are the same"]:
        say(line)
    return OK


def _source(site: SiteAddress, kernel: str) -> list[str]:
    found = site.get(f"/api/v1/kernels/{segment(kernel)}").json()
    if found.get("withheld"):
        fix = f"Its SHA-256 is {kernel}; its owner's token reads it."
        raise Misused(f"The source of kernel {kernel[:12]} is withheld by its submitter.", fix)
    if found["source"] is None:
        place = f"{found['path']} at {found['commit']} of {found['repository']}"
        raise Misused(f"The site does not hold kernel {kernel[:12]}.", f"It is {place}.")
    return str(found["source"]).split("\n")


def show(arguments: Namespace) -> int:
    """Show a problem: statement, signature, the best so far."""
    name = _problem_name(arguments.problem)
    site = site_called(arguments.site)
    if arguments.prompt:
        return _show_prompt(site, name, arguments)
    found = site.get(f"/api/v1/problems/{segment(name)}").json()
    if arguments.json:
        say_json(found)
        return OK
    if arguments.reference:
        say(str(found["reference_source"]).rstrip("\n"))
        return OK
    say(f"{found['number']} {found['slug']}: {found['title']} ({found['category_title']})")
    say(f"\n{textwrap.fill(str(found['statement']), WIDTH)}\n")
    say(f"solution({', '.join(_parameter(each) for each in found['signature'])})")
    say(f"ranks {_words(found['world_sizes'])}; sizes {_words(found['sizes'])}")
    _say_results(site.get(f"/problems/{found['number']}-{segment(found['slug'])}.json").json())
    return OK


def _show_prompt(site: SiteAddress, name: str, arguments: Namespace) -> int:
    asked = ("backend", "hardware", "world_size", "size", "dtype")
    query = {one: getattr(arguments, one) for one in asked}
    found = site.get(f"/api/v1/problems/{segment(name)}/prompt", query).json()
    if arguments.json:
        say_json(found)
    else:
        say(str(found["prompt"]).rstrip("\n"))
    return OK


def _problem_name(text: str) -> str:
    """Return what the API calls a problem that is named `13_gemm_allreduce`."""
    known = known_problems().get(text.partition("_")[2])
    return known.slug if known and text.startswith(f"{known.number}_") else text


def _parameter(each: dict[str, Any]) -> str:
    default = "" if each["default"] is None else f" = {each['default']}"
    return f"{each['name']}: {each['annotation']}{default}"


def _words(values: Any) -> str:
    return ", ".join(map(str, values))


def _say_results(page: dict[str, Any]) -> None:
    """Print the floors of a GPU and the best kernels in the page's setting."""
    floors = page["floors"]
    if floors["rows"]:
        say(f"\nleast time on {floors['gpu']}")
        _listed(floors["rows"], ("size", "ranks", "bound_us", "limiter"), as_json=False)
    best = page["kernels"][:MOST_KERNELS]
    say("\nbest so far" if best else "\nno kernel is right yet")
    if best:
        _listed(best, ("model", "harness", "submission", "speedup", "run"), as_json=False)


def _listed(rows: Sequence[dict[str, Any]], heads: Sequence[str], *, as_json: bool) -> int:
    """Print rows, as a table those of their values that `heads` names."""
    cells = [[row.get(name) for name in heads] for row in rows]
    if as_json:
        say_json(rows)
    else:
        say_table(heads, cells)
    return OK
