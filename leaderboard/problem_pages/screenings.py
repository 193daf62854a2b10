"""Shows of every problem what its check lets pass, and how much room its tolerances leave."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from django.http import HttpRequest

from leaderboard.delivery import cells
from leaderboard.delivery.pages import Crumb, Page, Table, public_page
from leaderboard.kit.json_types import JsonDict, JsonObject
from leaderboard.kit.links import url
from leaderboard.models import Problem

COLUMNS = (
    *("number", "slug", "profile", "size", "accepts_wrongly", "rejects_wrongly"),
    *("worst_honest", "cheapest_wrong", "cheapest", "seeds", "honest_seeds", "ranks", "device"),
)
DEVICES = {"cuda": "GPU", "cpu": "CPU"}


@public_page()
def screenings(request: HttpRequest) -> Page:
    problems = list(Problem.objects.order_by("number"))
    records = [record for problem in problems for record in records_of(problem)]
    erring = {
        record["number"]
        for record in records
        if record["profile"] == "hardened"
        and (record["accepts_wrongly"] or record["rejects_wrongly"])
    }
    rows = [_row(record) for record in records]
    return Page(
        template="screenings.html",
        section="problems",
        context={
            "total": len(problems),
            "erring": [one for one in problems if one.number in erring],
            "groups": [
                {"problem": one, "rows": [row for row in rows if row["number"] == one.number]}
                for one in problems
            ],
        },
        data={"screenings": records},
        table=Table.of(COLUMNS, records),
        crumbs=(
            Crumb(text="Leaderboard", url=url("board")),
            Crumb(text="Problems", url=url("problems")),
            Crumb(text="Health"),
        ),
    )


def records_of(problem: Problem) -> list[JsonDict]:
    """Return a record for each profile and size that a problem was screened at; errors are in
    tolerances, None where an exact answer has no unit."""
    return [_record(problem, key, part) for key, part in problem.payload["health"].items()]


def _record(problem: Problem, key: str, part: JsonObject) -> JsonDict:
    found = part["findings"]
    worst, _ = max(_errors(found, honest=True), default=(None, ""))
    least, cheapest = min(_errors(found, honest=False), default=(None, ""))
    return {
        "number": problem.number,
        "slug": problem.slug,
        "profile": key.partition("-")[0],
        "size": part["size"],
        "accepts_wrongly": " ".join(_erring(found, honest=False)),
        "rejects_wrongly": " ".join(_erring(found, honest=True)),
        "worst_honest": None if worst == inf else worst,
        "cheapest_wrong": None if least == inf else least,
        "cheapest": "" if least == inf else cheapest,
        "seeds": part["seeds"],
        "honest_seeds": part.get("honest_seeds", part["seeds"]),
        "ranks": " ".join(map(str, part["world_sizes"])),
        "device": DEVICES[part["device"]],
    }


def _errors(found: Iterable[JsonObject], *, honest: bool) -> list[tuple[float, str]]:
    """Return the error of each answer in each dtype, with the answer's name."""
    return [
        (inf if error is None else error, row["answer"])
        for row in found
        if row["honest"] is honest
        for error in row.get("errors", {}).values()
    ]


def _erring(found: Iterable[JsonObject], *, honest: bool) -> list[str]:
    return [
        row["answer"]
        for row in found
        if row["honest"] is honest and row["accepted"] is (not honest)
    ]


def _row(record: JsonDict) -> JsonDict:
    numbers = (record["worst_honest"], record["cheapest_wrong"])
    lists = ("accepts_wrongly", "rejects_wrongly", "ranks")
    return {
        **record,
        **{name: record[name].replace(" ", ", ") for name in lists},
        "cells": cells.joined(map(cells.significant_cell, numbers)),
    }
