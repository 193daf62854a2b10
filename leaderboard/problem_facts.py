"""What a problem's page tells besides its kernels: the task, its least cost, baselines, health."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.utils.safestring import SafeString

from leaderboard import cells
from leaderboard.display import highlighted
from leaderboard.models import Problem


def problem_context(found: Problem) -> dict[str, object]:
    payload = found.payload
    health = payload["health"]
    return {
        "problem": found,
        "source": payload.get("source", ""),
        "statement": payload["statement"],
        "signature": payload["signature"],
        "outputs": ", ".join(payload["outputs"]),
        "mutates": ", ".join(payload["mutates"]) or "nothing",
        "mesh": " × ".join(payload["mesh"]),
        "topology": payload["topology"],
        "requirements": requirements(payload["requirements"]),
        "world_sizes": ", ".join(map(str, payload["world_sizes"])),
        "reference": highlighted(payload["reference_source"]),
        "costs": cost_rows(payload),
        "latency_bound_reason": payload["latency_bound_reason"],
        "baselines": [baseline_row(baseline) for baseline in payload["baselines"]],
        "tolerances": [{"dtype": d, **row} for d, row in payload["tolerances"].items()],
        "tolerance_reason": payload["tolerance_reason"],
        "health": health_groups(found for part in health.values() for found in part["findings"]),
        "screenings": [screening(profile, part) for profile, part in health.items()],
        "known_issues": payload.get("known_issues", ()),
    }


def requirements(needs: Mapping[str, Any]) -> str:
    named = {"peer_access": "peer-to-peer access", "multicast": "NVLink multicast"}
    wanted = [text for name, text in named.items() if needs[name]]
    return ", ".join([*wanted, f"{needs['memory_gib']} GiB a GPU"])


def screening(profile: str, part: Mapping[str, Any]) -> str:
    """How many inputs a profile was screened with, and where."""
    ranks = " and ".join(map(str, part["world_sizes"]))
    where = "GPUs" if part["device"] == "cuda" else "CPU"
    return f"{profile}: {part['seeds']} seeds at size {part['size']} on {ranks} ranks ({where})"


def health_groups(found: Iterable[Mapping[str, Any]]) -> list[dict[str, object]]:
    """Wrong answers, then honest ones; a row for each answer, a finding for each profile."""
    groups: list[dict[str, object]] = []
    listed = list(found)
    for title, honest in (("Must be rejected", False), ("Must be accepted", True)):
        rows: dict[str, list[dict[str, object]]] = {}
        for row in listed:
            if row["honest"] is honest:
                rows.setdefault(row["answer"], []).append(_finding(row))
        answers = [{"name": name, "findings": findings} for name, findings in rows.items()]
        if answers:
            groups.append({"title": title, "answers": answers})
    return groups


def _finding(row: Mapping[str, Any]) -> dict[str, object]:
    errors = row.get("errors", {})
    made = [cells.decimal_cell(errors.get(dtype), 2) for dtype in ("float32", "bfloat16")]
    return {
        "profile": row["profile"],
        "why": row["why"],
        "said": {True: "accepted", False: "rejected", None: "does not apply"}[row["accepted"]],
        "state": "open" if row["accepted"] is None else _good(row["accepted"] is row["honest"]),
        "cells": cells.joined(made),
    }


def _good(as_it_should_be: bool) -> str:
    return "ok" if as_it_should_be else "bad"


def cost_rows(payload: Mapping[str, Any]) -> list[dict[str, object]]:
    return [
        {
            "size": size,
            "cells": cells.joined(
                cells.count_cell(int(n))
                for n in (payload["sizes"][size]["m"], payload["sizes"][size]["n"], ranks)
            ),
            "least": cells.joined(_least(cost)),
        }
        for size, by_ranks in payload.get("costs", {}).items()
        for ranks, cost in by_ranks.items()
    ]


def _least(cost: Mapping[str, float]) -> Iterable[SafeString]:
    yield cells.bytes_cell(cost["wire_bytes"])
    yield cells.bytes_cell(cost["hbm_bytes"])
    yield cells.operations_cell(cost["flops"])
    yield cells.count_cell(cost["exchanges"])


def baseline_row(baseline: Mapping[str, Any]) -> dict[str, object]:
    low_us, high_us = baseline["quartiles_us"]
    error = baseline["errors"].get(f"hardened {baseline['dtype']}")
    numbers = [
        cells.count_cell(baseline["world_size"]),
        *(cells.decimal_cell(us) for us in (baseline["us"], low_us, high_us)),
        cells.decimal_cell(error, 2),
        cells.bytes_cell(baseline["peak_mib"] * (1 << 20)),
    ]
    return {
        "gpu": baseline["gpus"][0].split(",")[0],
        "setting": f"{baseline['size']}, {baseline['dtype']}",
        "measured": baseline["measured"],
        "versions": f"torch {baseline['torch']}, NCCL {baseline['nccl']}",
        "current": baseline["current"],
        "cells": cells.joined(numbers),
    }
