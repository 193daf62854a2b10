"""Shows what kernels are judged on: what it reaches, who has it, how much was judged there."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
from django.http import Http404, HttpRequest
from django.urls import reverse
from django.utils.safestring import SafeString

from leaderboard.delivery import cells
from leaderboard.delivery.pages import Crumb, Page, Table, choice, public_page
from leaderboard.kit.json_types import JsonDict, JsonObject
from leaderboard.metrics import floors
from leaderboard.models import Hardware, LeaderboardRow, WorkerHost
from leaderboard.read_model import calibration, topologies
from leaderboard.site_pages.about import host_rows
from leaderboard.site_pages.hardware_figures import limit_figures
from problems.topology import hardware_text, pairs

FACTS = ("slug", "title", "device", "ranks", "hosts_alive")
# What of a calibration the list shows, and how its CSV calls it.
SHOWN = {
    "link": "link_gb_s",
    "hbm_read": "hbm_read_gb_s",
    "bfloat16": "bfloat16_tflop_s",
    "barrier": "barrier_us",
}
COUNTS = ("judge_version", "submissions", "problems", "attempts")
JUDGED_BY = ("hardware_id", "judge_version")
LIST_COLUMNS = (*FACTS, *SHOWN.values(), *COUNTS)
COLUMNS = (*calibration.FIELDS,)
STATE_COLUMNS = (
    *("gpu", "name", "sm_mhz", "memory_mhz", "temperature_c", "power_w", "throttle_reasons"),
)
HOSTS_COLUMNS = ("name", "hardware", "isolation", "judge_version", "seen_at", "alive", "state")
NOTHING = {"judge_version": "", "submissions": 0, "problems": 0, "attempts": 0}
NOT_MEASURED: dict[str, object] = dict.fromkeys(("rates", "latencies", "lacks"), ())


@public_page(live=True)
def hardware_list(request: HttpRequest) -> Page:
    hosts = list(WorkerHost.objects.alive().values_list("queue", flat=True))
    counts = judged_on(None)
    records = [
        {
            **known,
            "hosts_alive": hosts.count(known["slug"]),
            **medians(known["calibration"]),
            **next(iter(counts.get(known["slug"], ())), NOTHING),
        }
        for known in known_hardware()
    ]
    return Page(
        template="hardware_list.html",
        section="hardware",
        context={"rows": [_list_row(record) for record in records]},
        data={"hardware": [{name: row[name] for name in LIST_COLUMNS} for row in records]},
        table=Table.of(LIST_COLUMNS, records),
        crumbs=(Crumb(text="Leaderboard", url=reverse("board")), Crumb(text="Hardware")),
    )


def known_hardware() -> list[JsonDict]:
    """Return what hosts have said hello with, then what only was measured."""
    rows = [
        {
            "slug": row.slug,
            "title": row.title,
            "device": row.device,
            "ranks": row.max_world_size,
            "calibration": calibration.known_of(row.slug, row.facts),
            "versions": row.facts.get("environment", {}).get("versions", {}),
        }
        for row in Hardware.objects.all()
    ]
    seen = {row["slug"] for row in rows}
    return rows + [
        measured_only(slug, data)
        for slug, data in calibration.of_release().items()
        if slug not in seen
    ]


def measured_only(slug: str, data: JsonObject) -> JsonDict:
    gpus = data["gpus"]
    title = f"{len(gpus)} x {gpus[0]}"
    facts = {"slug": slug, "title": title, "device": "cuda", "ranks": data["world_size"]}
    return {**facts, "calibration": data, "versions": calibration.versions(data)}


def medians(data: JsonObject | None) -> dict[str, float | None]:
    """Return what a GPU reaches, of the quantities of the list."""
    reached = {row.quantity: row.median for row in calibration.reached(data)} if data else {}
    return {column: reached.get(name) for name, column in SHOWN.items()}


def judged_on(slug: str | None) -> dict[str, list[JsonDict]]:
    """Return ranked submissions, problems and attempts that ran there, by hardware and there by
    version of the judge, the newest first; one query. What failed a check elsewhere and counts as
    failed here did not run here."""
    only = {} if slug is None else {"hardware_id": slug}
    ranked = LeaderboardRow.objects.ranked().filter(**only).order_by()
    ran: dict[tuple[str, str], list[tuple[int, JsonObject]]] = {}
    for own, judge, submission, total in ranked.values_list(*JUDGED_BY, "submission_id", "total"):
        ran.setdefault((own, judge), []).append((submission, orjson.loads(total)["ran"]))
    found: dict[str, list[JsonDict]] = {}
    for (own, judge), rows in ran.items():
        submissions = {number for number, one in rows if one["attempts"]}
        problems = {number for _, one in rows for number in one["problems"]}
        attempts = sum(one["attempts"] for _, one in rows)
        values = (judge, len(submissions), len(problems), attempts)
        if attempts:
            found.setdefault(own, []).append(dict(zip(COUNTS, values, strict=True)))
    for own_rows in found.values():
        own_rows.sort(
            key=lambda row: (len(row["judge_version"]), row["judge_version"]), reverse=True
        )
    return found


def _list_row(record: JsonObject) -> dict[str, object]:
    numbers = [
        cells.count_cell(record["ranks"]),
        *(cells.any_cell(record[name]) for name in SHOWN.values()),
        cells.count_cell(record["hosts_alive"]),
    ]
    return {
        "judge": record["judge_version"],
        "counts": _counts(record),
        "url": reverse("hardware", args=[record["slug"]]),
        "slug": record["slug"],
        "title": record["title"],
        "cells": cells.joined(numbers),
    }


def _counts(row: JsonObject) -> SafeString:
    return cells.joined(cells.count_cell(row[name]) for name in COUNTS[1:])


@public_page("table", live=True)
def hardware(request: HttpRequest, slug: str) -> Page:
    every = known_hardware()
    known = next((row for row in every if row["slug"] == slug), None)
    if known is None:
        raise Http404
    data = known["calibration"]
    judged = judged_on(slug).get(slug, [])
    newest = next(iter(judged), NOTHING)
    hosts = host_rows(slug)
    limits = floors.limits_of(known["title"])
    facts = {name: value for name, value in known.items() if name in FACTS}
    facts["topology"] = hardware_text(topologies.class_of(known, data))
    tables = tables_of(data or {}, judged, hosts)
    return Page(
        template="hardware.html",
        section="hardware",
        context={
            **facts,
            "judged": [{"judge": row["judge_version"], "cells": _counts(row)} for row in judged],
            **{"newest": newest, "hosts": hosts},
            "alive": sum(bool(host["alive"]) for host in hosts),
            "versions": versions(hosts, known["versions"] or calibration.versions(data or {})),
            "alike": alike(known, every) if data is None else [],
            **{"limits": limits, "page_url": reverse("hardware", args=[slug])},
            **(calibration_context(slug, data) if data else NOT_MEASURED),
        },
        data={
            **facts,
            **newest,
            **{"judged": judged, "hosts": hosts},
            "datasheet": limits and vars(limits),
            "calibration": data,
        },
        table=tables[choice(request, "table", list(tables), "measured")],
        crumbs=(
            Crumb(text="Leaderboard", url=reverse("board")),
            Crumb(text="Hardware", url=reverse("hardware-list")),
            Crumb(text=slug),
        ),
    )


def tables_of(
    data: JsonObject,
    judged: Sequence[JsonObject],
    hosts: Sequence[JsonObject],
) -> dict[str, Table]:
    """Return the tables by what `?table=` calls them."""
    clocks = [
        {"gpu": number, **state, "throttle_reasons": " ".join(state["throttle_reasons"])}
        for number, state in enumerate(data.get("states", ()))
    ]
    return {
        "measured": Table.of(COLUMNS, data.get("measurements", ())),
        "judged": Table.of(COUNTS, judged),
        "clocks": Table.of(STATE_COLUMNS, clocks),
        "hosts": Table.of(HOSTS_COLUMNS, hosts),
    }


def versions(hosts: Sequence[JsonObject], recorded: JsonObject) -> list[dict[str, str]]:
    """Return what living hosts say, several where they differ; else what is recorded."""
    found: dict[str, set[str]] = {}
    for host in hosts:
        for name, value in host["versions"].items() if host["alive"] else ():
            found.setdefault(name, set()).add(str(value))
    found = found or {name: {str(value)} for name, value in recorded.items()}
    return [{"name": name, "value": ", ".join(sorted(found[name]))} for name in sorted(found)]


def alike(known: JsonObject, every: Sequence[JsonObject]) -> list[str]:
    """Return other classes with the same GPU that were measured."""
    limits = floors.limits_of(known["title"])
    return [
        row["slug"]
        for row in every
        if limits and row["calibration"] and floors.limits_of(row["title"]) is limits
    ]


def calibration_context(slug: str, data: JsonObject) -> dict[str, object]:
    rows = calibration.reached(data)
    return {
        "measured": str(data["date"])[:10],
        "method": data.get("method", ""),
        "gpus": ", ".join(dict.fromkeys(data["gpus"])),
        "rates": [_reached_row(row) for row in rows if row.datasheet is not None],
        "latencies": [_reached_row(row) for row in rows if row.datasheet is None],
        "pairs": pair_rows(data),
        "states": [_state_row(number, state) for number, state in enumerate(data["states"])],
        "settings": [{"name": n, "value": v} for n, v in sorted(data["settings"].items())],
        "lacks": calibration.lacks(data),
        "figures": limit_figures(slug, rows),
    }


def _reached_row(row: calibration.Reached) -> dict[str, object]:
    numbers = [cells.any_cell(row.median), cells.any_cell(row.best)]
    if row.datasheet is not None:
        numbers += [cells.any_cell(row.datasheet), cells.share_cell(row.share)]
    return {"title": row.title, "unit": row.unit, "cells": cells.joined(numbers)}


def pair_rows(data: JsonObject) -> dict[str, object] | None:
    """Return a row for each sender, a column for each receiver; None where no pair was measured."""
    found = pairs(data)
    if not found:
        return None
    gpus = sorted({gpu for pair in found for gpu in pair})
    limit = next(r["datasheet"] for r in data["measurements"] if r["quantity"] == "link")
    rows = []
    for sender in gpus:
        rates = [found.get((sender, receiver)) for receiver in gpus]
        made = [cells.tinted_cell(r, r / limit if r and limit else None) for r in rates]
        rows.append({"gpu": sender, "cells": cells.joined(made)})
    return {"gpus": gpus, "rows": rows}


def _state_row(number: int, state: JsonObject) -> dict[str, object]:
    numbers = (state["sm_mhz"], state["memory_mhz"], state["temperature_c"], state["power_w"])
    return {
        "number": number,
        "name": state["name"],
        "cells": cells.joined(cells.count_cell(value) for value in numbers),
        "throttled": ", ".join(state["throttle_reasons"]) or "nothing",
    }
