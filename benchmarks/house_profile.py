"""What a GPU does in a call of a house kernel: `house_profile.py REPORTS.jsonl.gz ... [--out F]`.

REPORTS are what `house_kernels.py --reports` wrote. Their timelines hold two calls of each rank.
Where all ranks share a GPU, they take turns of 2 ms: a launch that waits for a peer lasts for as
many turns, any other as long as it works, unless the end of a turn falls into it. So each launch
counts with the least that it took on any rank. Of one that waits for nobody, that is its work; of
one that waits, what the rank needed that came last and found everything there: an upper bound of
its work, with peers' memory in the same GPU. Where ranks do different work, it is the least of
theirs. Where it is more than half a turn, it says nothing, as of a launch with two exchanges, in
which nobody comes last twice. With a GPU for each rank the least is taken alike. Which kernels wait
is read from the source: those with a loop `while`, and what calls them.

The judge's copies of outputs, which end each call, are left out. Beside `busy_us`, all launches
together, stands the roofline of one GPU: the problem's memory bytes and operations by the
datasheet's rates, without links and latency, nothing in caches. `share` is its larger part over
`busy_us`, and there only where both calls took alike: their options, which no report keeps, may ask
for other work than the problem's cost counts. Microseconds of a call, on average of the two.
`idle` is the part of a profile in which nothing ran, where no other rank shares the GPU.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import combinations
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from judged_lines import with_rows
from reports_file import read

import problems
from evaluator.messages.job import Dtype, Placement
from evaluator.messages.profile import EventKind
from evaluator.timing.limits import limits_of
from evaluator.timing.roofline import roofline_bounds
from problems import ProblemModule
from problems.timed_work import work_share
from tests.evaluator.house_files import jitted

OUT = Path(__file__).resolve().parent / "results" / "house-profile.json"
HALF_A_TURN_US = 1000.0
ALIKE = 1.1
# What the file keeps of a row.
COLUMNS = (
    *("number", "problem", "hardware", "world_size", "launches", "local_us", "waiting_us"),
    *("busy_us", "are_calls_alike", "hbm_us", "flops_us", "share", "idle", "timed_us"),
)
CALLS, SLOWEST, NAME_CHARS = 2, 3, 100
MANY_CALLS = 1 << 40  # no L2 of outputs is left out
Events = list[dict[str, Any]]


class Step(NamedTuple):
    """A launch or copy: its name, the least that it took, whether it waits for peers, and whether
    that is the time of its work."""

    name: str
    us: float
    waits: bool
    is_told: bool


Call = list[Step]


def rows(paths: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """Yield a row for each report that has a profile."""
    for line in read(paths):
        if line["report"]["timelines"]:
            yield row(line)


def stored() -> dict[str, Any]:
    """Read the file; its rows are by column."""
    found: dict[str, Any] = json.loads(OUT.read_text())
    return {
        **found,
        "rows": [dict(zip(found["columns"], one, strict=True)) for one in found["rows"]],
    }


def row(line: dict[str, Any]) -> dict[str, Any]:
    """Return what the profile of a kernel says."""
    job, report = line["job"], line["report"]
    module = problems.load(problems.find(line["problem"]))
    dropped = sum(timeline["dropped_events"] for timeline in report["timelines"])
    both = [] if dropped else calls(line, module)
    is_alone = job["placement"] != Placement.SHARED
    return {
        "number": module.problem.number,
        "problem": line["problem"],
        "hardware": job["hardware"],
        "world_size": job["world_size"],
        "dropped_events": dropped,
        "launches": fmean(map(len, both)) if both else None,
        **figures(both, bounds(module, job, report["environment"]["hardware"])),
        "idle": idle_share(report["timelines"]) if is_alone else None,
        "timed_us": report["timing"] and round(report["timing"]["kernel_us"], 1),
        "slowest": list(slowest(both)),
    }


def idle_share(timelines: list[dict[str, Any]]) -> float:
    """Return for how much of both calls nothing ran on a rank, on average."""
    return round(fmean(timeline["idle_us"] / timeline["span_us"] for timeline in timelines), 3)


def figures(both: list[Call], least: dict[str, float]) -> dict[str, Any]:
    """Return times of a call beside the roofline; None where the profile does not tell."""
    local, waiting, busy = (
        [sum(step.us for step in call if step.waits in kinds) for call in both if told(call, kinds)]
        for kinds in ((False,), (True,), (False, True))
    )
    is_alike = len(busy) == CALLS and max(busy) <= ALIKE * min(busy)
    return {
        "local_us": mean_us(local),
        "waiting_us": mean_us(waiting),
        "busy_us": mean_us(busy),
        "are_calls_alike": is_alike,
        **{name: round(us, 3) for name, us in least.items()},
        "share": round(max(least.values()) / fmean(busy), 4) if is_alike else None,
    }


def told(call: Call, kinds: tuple[bool, ...]) -> bool:
    """Return whether each step of a call, as far as it waits or not, was once seen at work."""
    return all(step.is_told for step in call if step.waits in kinds)


def mean_us(of_calls: list[float]) -> float | None:
    """Return the mean of both calls, if both are known."""
    return round(fmean(of_calls), 1) if len(of_calls) == CALLS else None


def bounds(module: ProblemModule, job: dict[str, Any], hardware: str) -> dict[str, float]:
    """Return how long one GPU needs at least for a call's bytes and for its operations."""
    size, ranks, dtype = module.problem.sizes[job["size"]], job["world_size"], Dtype(job["dtype"])
    limits = limits_of(hardware.partition(" x ")[2])
    assert limits is not None, hardware
    cost = module.cost(module.dims(size.m, size.n, ranks), ranks, dtype.itemsize)
    found = roofline_bounds(cost.times(work_share(module)), dtype, limits, MANY_CALLS)
    return {"hbm_us": found.hbm_us, "flops_us": found.flops_us}


def calls(line: dict[str, Any], module: ProblemModule) -> list[Call]:
    """Return both calls of a profile, without the judge's copies."""
    report, waiting = line["report"], waiting_kernels(line["source"])
    timelines = report["timelines"]
    ranks = [
        halves(timeline["events"], returned(report, module, timeline["rank"]))
        for timeline in timelines
    ]
    limit_us = HALF_A_TURN_US if line["job"]["placement"] == Placement.SHARED else math.inf
    return [steps(list(events), waiting, limit_us) for events in zip(*ranks, strict=True)]


def returned(report: dict[str, Any], module: ProblemModule, rank: int) -> int:
    """Return how many outputs the judge copied behind each call of a rank."""
    names = [c["output"] for c in report["trials"][0]["checks"] if c["rank"] == rank]
    return sum(name.partition("[")[0] not in module.problem.mutates for name in names)


def halves(events: Events, copies: int) -> tuple[Events, Events]:
    """Cut a timeline between its calls, and the last `copies` events off each: in the middle, or
    where the first ends, nearest to that, as the second does."""
    names = [event["name"] for event in events]
    middle = len(names) // 2
    cuts = [middle] if names[:middle] == names[middle:] else range(copies, len(names))
    ends = [cut for cut in cuts if names[cut - copies : cut] == names[len(names) - copies :]]
    cut = min(ends, key=lambda cut: abs(cut - middle), default=middle)
    return events[: cut - copies], events[cut : len(names) - copies]


def steps(ranks: list[Events], waiting: set[str], limit_us: float) -> Call:
    """Return what any rank did in a call, each with the least time of a rank."""
    times: dict[tuple[str, int], list[float]] = defaultdict(list)
    kinds: dict[str, str] = {}
    for events in ranks:
        seen = Counter[str]()
        for event in events:
            times[event["name"], seen[event["name"]]].append(event["duration_us"])
            seen[event["name"]] += 1
            kinds[event["name"]] = event["kind"]
    waits = {n: n in waiting or kind == EventKind.COMMUNICATION for n, kind in kinds.items()}
    return [Step(name, min(us), waits[name], min(us) < limit_us) for (name, _), us in times.items()]


def waiting_kernels(source: str) -> set[str]:
    """Return the kernels of a source that have a loop `while`, or call one that has."""
    bodies = {name: list(ast.walk(node)) for name, node in jitted(source).items()}
    found = {name for name, body in bodies.items() if any(isinstance(n, ast.While) for n in body)}
    while True:
        more = {
            name
            for name, body in bodies.items()
            if any(isinstance(node, ast.Name) and node.id in found for node in body)
        }
        if more <= found:
            return found
        found |= more


def slowest(both: list[Call]) -> Iterator[dict[str, Any]]:
    """Yield the names of the steps that take most of a call, as far as they say something."""
    of_name: dict[str, list[Step]] = defaultdict(list)
    for step in (step for call in both for step in call):
        if step.is_told:
            of_name[step.name].append(step)
    ordered = sorted(of_name.items(), key=lambda item: -sum(step.us for step in item[1]))
    for name, own in ordered[:SLOWEST]:
        yield {
            "name": name[:NAME_CHARS],
            "us": round(sum(step.us for step in own) / len(both), 1),
            "launches": len(own) / len(both),
            "waits": own[0].waits,
        }


def summary(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Return how much of timed calls GPUs work, and what fewer GPUs say beside more."""
    told = [one for one in found if one["busy_us"]]
    machines: dict[str, dict[int, float]] = defaultdict(dict)
    for one in told:
        machines[f"{one['hardware']} W={one['world_size']}"][one["number"]] = one["busy_us"]
    ratios = {}
    for fewer, more in combinations(sorted(machines), 2):
        own, others = machines[fewer], machines[more]
        ratios[f"{fewer} to {more}"] = spread([own[n] / others[n] for n in own.keys() & others])
    return {
        "told": {machine: len(rows) for machine, rows in machines.items()},
        "busy_us of timed_us": spread(
            [one["busy_us"] / one["timed_us"] for one in told if one["timed_us"]]
        ),
        "idle": spread([one["idle"] for one in found if one["idle"] is not None]),
        "ratio of busy_us": ratios,
    }


def spread(values: list[float]) -> dict[str, float] | None:
    """Return how many there are, and the least, middle and greatest."""
    if not values:
        return None
    low, middle, high = (round(of(values), 3) for of in (min, median, max))
    return {"count": len(values), "min": low, "median": middle, "max": high}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reports", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=OUT)
    return parser.parse_args()


def main() -> int:
    given = arguments()
    found = sorted(rows(given.reports), key=lambda row: (row["hardware"], row["number"]))
    head = {"reports": [path.name for path in given.reports], "summary": summary(found)}
    table = [[one[column] for column in COLUMNS] for one in found]
    given.out.write_text(with_rows({**head, "columns": COLUMNS}, table))
    for one in found:
        where = f"{one['hardware']} {one['number']:3} {one['problem'][:40]:<40}"
        keys = ("launches", "local_us", "waiting_us", "busy_us", "hbm_us", "flops_us", "share")
        print(where, *(f"{one[key] if one[key] is not None else '-':>8}" for key in keys))
        print("   ", *(f"{step['name']} {step['us']} us" for step in one["slowest"]), sep="  ")
    print(json.dumps(head["summary"], indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
