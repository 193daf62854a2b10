"""Makes the parts of a problem's page besides its kernels: the task, its least cost, health.

`called` reads the problem itself.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
from django.db import DEFAULT_DB_ALIAS
from django.db.models import OuterRef, QuerySet, Subquery, TextField
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, JSONObject
from django.utils.safestring import SafeString

from leaderboard.delivery import cells
from leaderboard.kit.highlighting import highlighted
from leaderboard.kit.json_types import JsonDict, JsonObject
from leaderboard.kit.links import url
from leaderboard.metrics.floors import (
    FLOOR_WORDS,
    LIMITER_WORDS,
    Floors,
    Limits,
    datasheets,
    floors,
)
from leaderboard.models import Problem, Publication
from leaderboard.models.choices import DTYPES
from leaderboard.read_model import topologies
from leaderboard.read_model.baselines import times_alone
from leaderboard.read_model.problem_results import SettingTotals, has_older_results
from leaderboard.read_model.published_claims import SIZE_CURVES
from problems.limits import TERMS, UPSTREAM, limits_of
from problems.prompt import timed_arguments
from problems.topology import records

TIMED = "standard size, {ranks} ranks, bfloat16"
SCREENED = tuple(name for name, _ in DTYPES)
# Best time of a kernel in microseconds, by size and ranks.
Times = Mapping[tuple[str, int], float]
Timed = tuple[tuple[str, int], float]


class Task(NamedTuple):
    """Holds a problem as it is stored, of which parts of its page are drawn."""

    payload: str
    digest: str
    url: str

    @property
    def facts(self) -> dict[str, object]:
        return _facts(self.payload)


class FloorTable(NamedTuple):
    """Holds the sources of the table of floors: a problem as it is stored, a GPU, and times
    measured on it in microseconds. `tail` is the part of an address that stays with another GPU."""

    payload: str
    gpu: str
    tail: str
    references: tuple[Timed, ...]
    kernels: tuple[Timed, ...]

    @property
    def limits(self) -> Limits:
        return datasheets()[self.gpu]

    @property
    def gpus(self) -> list[dict[str, object]]:
        return [
            {"url": f"?gpu={known.slug}{self.tail}", "gpu": known.gpu, "current": name == self.gpu}
            for name, known in datasheets().items()
        ]

    @property
    def heads(self) -> list[dict[str, str]]:
        return [words._asdict() for words in FLOOR_WORDS.values()]

    @property
    def floors(self) -> list[dict[str, object]]:
        times = (dict(self.references), dict(self.kernels))
        return floor_rows(orjson.loads(self.payload), self.limits, *times)


# Memoised, as three parts of the same page ask for it.
@functools.lru_cache(maxsize=1)
def _facts(payload: str) -> dict[str, object]:
    return task_context(orjson.loads(payload))


def parameters(payload: JsonObject) -> list[dict[str, object]]:
    """Return the parameters of `solution`, each with what timed calls give it."""
    timed = timed_arguments(payload, _fewest_ranked(payload), "bfloat16", "standard")
    return [{**each, "timed": timed.get(each["name"], "")} for each in payload["signature"]]


def _fewest_ranked(payload: JsonObject) -> int:
    every: list[int] = payload["world_sizes"]
    return min((n for n in every if n >= payload["ranked_from"]), default=max(every))


def task_context(payload: JsonObject) -> dict[str, object]:
    health = payload["health"]
    findings = [found for part in health.values() for found in part["findings"]]
    screened = [name for name in SCREENED if any(name in row.get("errors", ()) for row in findings)]
    return {
        "statement": payload["statement"],
        "signature": parameters(payload),
        "timed_on": TIMED.format(ranks=_fewest_ranked(payload)),
        "outputs": ", ".join(payload["outputs"]),
        "mutates": ", ".join(payload["mutates"]) or "nothing",
        "mesh": " × ".join(payload["mesh"]),
        "topology": payload["topology"],
        "requirements": requirements(payload["requirements"]),
        "world_sizes": ", ".join(map(str, payload["world_sizes"])),
        "reference": _coloured(payload["reference_source"]),
        "latency_bound_reason": payload["latency_bound_reason"],
        "limit_terms": TERMS,
        "limits": [{"dtype": d, "rows": limits_of(payload, d)} for d in payload["tolerances"]],
        "upstream_limit": UPSTREAM,
        "tolerance_reason": payload["tolerance_reason"],
        "health": health_groups(findings, screened),
        "screened": screened,
        "screenings": [screening(profile, part) for profile, part in health.items()],
        "known_issues": payload.get("known_issues", ()),
    }


@functools.lru_cache(maxsize=128)
def _coloured(reference: str) -> SafeString:
    """Return a reference as highlighted markup; memoised, as there are few references and colouring
    one takes as long as the rest of the page."""
    return highlighted(reference)


def requirements(needs: JsonObject) -> str:
    named = {"peer_access": "peer-to-peer access", "multicast": "NVLink multicast"}
    wanted = [text for name, text in named.items() if needs[name]]
    return ", ".join([*wanted, f"{needs['memory_gib']} GiB a GPU"])


def screening(profile: str, part: JsonObject) -> str:
    """Return how many inputs a profile was screened with, and where."""
    ranks = " and ".join(map(str, part["world_sizes"]))
    where = "GPUs" if part["device"] == "cuda" else "CPU"
    honest = part.get("honest_seeds", 0)
    more = f" ({honest} for honest answers)" if honest > part["seeds"] else ""
    return (
        f"{profile}: {part['seeds']} seeds{more} at size {part['size']} on {ranks} ranks ({where})"
    )


def health_groups(listed: Sequence[JsonObject], dtypes: Sequence[str]) -> list[dict[str, object]]:
    """Return wrong answers, then honest ones; a row for each answer, a finding for each profile."""
    groups: list[dict[str, object]] = []
    for title, honest in (("Must be rejected", False), ("Must be accepted", True)):
        rows: dict[str, list[dict[str, object]]] = {}
        for row in listed:
            if row["honest"] is honest:
                rows.setdefault(row["answer"], []).append(_finding(row, dtypes))
        answers = [{"name": name, "findings": findings} for name, findings in rows.items()]
        if answers:
            groups.append({"title": title, "answers": answers})
    return groups


def _finding(row: JsonObject, dtypes: Iterable[str]) -> dict[str, object]:
    errors = row.get("errors", {})
    made = [cells.significant_cell(errors.get(dtype)) for dtype in dtypes]
    return {
        "profile": row["profile"],
        "why": row["why"],
        "said": {True: "accepted", False: "rejected", None: "does not apply"}[row["accepted"]],
        "state": "open" if row["accepted"] is None else _good(row["accepted"] is row["honest"]),
        "cells": cells.joined(made),
    }


def _good(as_it_should_be: bool) -> str:
    return "ok" if as_it_should_be else "bad"


def floor_records(payload: JsonObject, limits: Limits) -> list[JsonDict]:
    """Return the least cost and the least time (microseconds) of every size and number of ranks, in
    bfloat16."""
    records = []
    for size, by_ranks in payload.get("costs", {}).items():
        shape = {name: payload["sizes"][size][name] for name in ("m", "n")}
        for ranks, cost in by_ranks.items():
            made = floors(cost, limits)
            records.append({"size": size, **shape, "ranks": int(ranks), **cost, **_times(made)})
    return records


def _times(made: Floors) -> dict[str, object]:
    parts = {**made.named, "latency": made.latency_us}
    named = {f"{name}_us": us for name, us in parts.items()}
    return {**named, "bound_us": made.bound_us, "limiter": made.limiter}


def floor_rows(
    payload: JsonObject, limits: Limits, judged: Times, kernels: Times
) -> list[dict[str, object]]:
    """Return a group for each size, a row for each number of ranks; times measured on this GPU
    beside it, in microseconds: the reference beside kernels where it was `judged`, else alone."""
    references = {**times_alone(payload, limits), **judged}
    groups: dict[str, JsonDict] = {}
    for record in floor_records(payload, limits):
        place = (record["size"], record["ranks"])
        shape = f"{record['m']:,} × {record['n']:,}"
        how = "" if place in judged else "by events"
        group = groups.setdefault(record["size"], {"size": record["size"], "shape": shape})
        group.setdefault("rows", []).append(
            {
                "ranks": record["ranks"],
                "floors": cells.joined(_floor_cells(record)),
                "limiter": LIMITER_WORDS[record["limiter"]],
                "times": cells.joined(
                    (
                        cells.reached_cell(references.get(place), record["bound_us"], how),
                        cells.reached_cell(kernels.get(place), record["bound_us"]),
                    )
                ),
            }
        )
    return list(groups.values())


def _floor_cells(record: JsonObject) -> Iterable[SafeString]:
    for amount, text, name in (
        ("wire_bytes", cells.bytes_text, "wire"),
        ("hbm_bytes", cells.bytes_text, "hbm"),
        ("flops", cells.count_text, "flops"),
        ("exchanges", cells.count_text, "latency"),
    ):
        binds = record["limiter"] == name
        yield cells.floor_cell(record[amount], record[f"{name}_us"], text=text, binds=binds)
    yield cells.time_cell(record["bound_us"])


class Called(NamedTuple):
    """Holds a problem with its payload as text, links to those before and after it, and the curves
    that a publication shows of problems."""

    problem: Problem
    text: str
    before: JsonObject | None
    after: JsonObject | None
    claimed: Any


# What this page needs of a problem besides its payload.
COLUMNS = (
    *("number", "slug", "category", "category_title", "title", "summary", "digest"),
    *("scored", "unscored_reason", "ranked_from", "ranked_from_reason"),
    *("source", "costs", "baselines"),
)


def called(slug: str) -> Called | None:
    """Return the problem of this slug; one query."""
    for *columns, text, before, after, claimed in _with_neighbours(slug):
        found = Problem.from_db(DEFAULT_DB_ALIAS, COLUMNS, columns)
        found.payload = orjson.loads(text)
        return Called(found, text, before, after, orjson.loads(claimed) if claimed else None)
    return None


def _with_neighbours(slug: str) -> QuerySet[Problem, tuple[Any, ...]]:
    """Return what `Called` holds."""
    others = Problem.objects.values(link=JSONObject(number="number", slug="slug", title="title"))
    before = others.filter(number__lt=OuterRef("number")).order_by("-number")[:1]
    after = others.filter(number__gt=OuterRef("number")).order_by("number")[:1]
    own = Problem.objects.filter(slug=slug).order_by()
    text = Cast("payload", TextField())
    told = Publication.objects.order_by("pk").values(text=KT(f"payload__{SIZE_CURVES}"))[:1]
    return own.values_list(*COLUMNS, text, Subquery(before), Subquery(after), Subquery(told))


def known_context(known: Called, stood: Sequence[SettingTotals]) -> dict[str, object]:
    """Return what the page shows of the problem, besides parts that are drawn by themselves."""
    found = known.problem
    return {
        "before": _neighbour(known.before),
        "after": _neighbour(known.after),
        "problem": found,
        "has_older": not stood and has_older_results(found),
        "source": found.payload.get("source", ""),
        "topologies": records(topologies.classes_of(stood), found.payload),
    }


def _neighbour(link: JsonObject | None) -> dict[str, object] | None:
    return {**link, "url": url("problem", link["number"], link["slug"])} if link else None
