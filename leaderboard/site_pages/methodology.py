"""Explains on the methodology page the judge's constants, and its closed sets in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from leaderboard.delivery import cells
from leaderboard.delivery.pages import Table
from leaderboard.kit.json_types import JsonObject
from leaderboard.metrics import intervals, verdicts
from leaderboard.metrics.failures import failure_mode
from leaderboard.metrics.floors import FLOOR_WORDS
from leaderboard.models import Trust
from leaderboard.models.choices import COUNTED_VERDICTS, CURRENT_JUDGE, ISOLATIONS, VERDICTS
from leaderboard.read_model.judge_constants import judge_constants
from leaderboard.site_pages.glossary import GLOSSARY, JUDGE_VERSIONS

EXAMPLE_SHARE = 0.3
# What the page's CSV can be of; each of SETS is in the page's context.
SETS = ("verdicts", "flags", "patterns", "mechanisms", "evidence", "isolation", "trust", "floors")
TABLES = (*SETS, "limits")
DEVICES = {"cpu": "Processors", "cuda": "GPUs"}

SECTIONS = (
    ("glossary", "Glossary"),
    ("metrics", "Metrics"),
    ("ties", "Intervals, ties, places"),
    ("counts", "What counts"),
    ("verify", "Correctness"),
    ("profiles", "Input profiles"),
    ("timing", "Timing"),
    ("placement", "All ranks on one GPU"),
    ("told-apart", "Fast, and how sure"),
    ("floors", "Floors and utilisation"),
    ("isolation", "Isolation"),
    ("trust", "Trust"),
    ("prompts", "How models are asked"),
    ("verdicts", "Verdicts"),
    ("flags", "Flags"),
    ("mechanisms", "Mechanisms"),
    ("risks", "What is left to doubt"),
    ("version", "Versions"),
    ("cite", "Citing"),
)

# Flags that only judges up to 9 set.
OLDER_FLAGS = {
    "superbatch_suspect": "Up to judge 9: the kernel slows down far more than the reference when "
    "calls come one by one. Its single calls are what is scored.",
    "open_bursts": "Up to judge 9: no answer of this problem can open the inputs of the next call, "
    "so calls of a batch might be merged. Its single calls are what is scored.",
    "reference_disturbed": "Up to judge 9: the reference was slower next to this kernel by a "
    "quarter or more than after its end, or its empty batches scattered. Its times alone are what "
    "is scored.",
    "judged_twice": "Up to judge 9: in a first run the reference seemed disturbed, as it also does "
    "on a host that is slow for a moment. This is the second run, and it stands.",
    "timing_mismatch": "Up to judge 9: its ranks report far less time than the judge's clock "
    "shows.",
    "race_screened": "Up to judge 9: its host screens timed runs, too, for races between calls. "
    "Judge 10 screens every run.",
}
FLAGS = {
    "noisy_host": "The reference's own times vary or drift, so the host was disturbed.",
    "baseline_drifted": "The reference's medians before and after the kernel differ by more than 3 "
    "%, even after both were measured again.",
    "times_disagree": "The score is more than 1.5 times the speedup back to back. A person should "
    "look at it.",
    "profile_hung": "It hung while it was recorded, after its verdict: it has no timeline.",
    "unclean_host": "Its processes were still there long after they were killed.",
    "uses_nccl": "Its source, comments included, has words that call NCCL or torch.distributed, or "
    "its trace shows NCCL. Filters go by the mechanism.",
    "uses_vendor_lib": "Calls a vendor's library for its arithmetic.",
    "interpreted": "Triton's interpreter ran it on a processor: it is right, and its times say "
    "nothing.",
    "soft_limits": "Limits on memory and processes were watched, not enforced.",
    **OLDER_FLAGS,
}
PATTERNS = {
    "static:ctypes": "loads libraries by hand",
    "static:frames": "looks at the frames of its callers",
    "static:garbage-collector": "searches the objects of its process",
    "static:processes": "starts or signals processes",
    "static:threads": "starts threads",
    "static:proc-filesystem": "reads /proc",
    "static:patched-clock": "replaces a clock",
    "static:patched-comparison": "replaces a comparison",
    "static:side-stream": "makes CUDA streams of its own",
    "static:cuda-graph": "records CUDA graphs",
    "static:seeding": "seeds a random generator",
}
MECHANISMS = {
    "nccl": "NCCL's collectives, called directly or by torch.distributed.",
    "gloo": "gloo's collectives, on processors.",
    "nvshmem": "NVSHMEM's one-sided copies.",
    "copy_engine": "Copies by the GPU's copy engine, while its cores do other work.",
    "sm_load_store": "Kernels load from, or store to, another GPU's memory.",
    "tma": "Bulk copies by Hopper's tensor memory accelerator, to a peer's memory.",
    "multimem": "One store for all GPUs, or a sum made in the switch.",
    "signal_pads": "Flags in shared memory by which GPUs wait for each other.",
    "symmetric_memory": "torch's symmetric memory: buffers that all ranks can address.",
    "cuda_graph": "Calls recorded once and replayed.",
}
EVIDENCE = {
    "trace": "seen at work in the profiler's trace",
    "sass": "in the machine code that the ranks built",
    "source": "named by the source",
}
ISOLATION_MEANINGS = {
    "vm": "A virtual machine of its own for each run. Not built yet.",
    "bwrap+cgroup+seccomp": "Namespaces, a filter of system calls, enforced limits.",
    "bwrap": "Namespaces. Limits are watched, or there is no filter of system calls.",
    "none": "For development. Never ranked.",
}


def methodology_context(scored: int) -> dict[str, object]:
    known = judge_constants()
    interval = intervals.wilson_interval(EXAMPLE_SHARE, scored)
    return {
        "contents": [{"anchor": anchor, "text": title} for anchor, title in SECTIONS],
        "judge_version": CURRENT_JUDGE,
        "known": known,
        "limits": [_limits_row(device, known) for device in DEVICES],
        "example_share": EXAMPLE_SHARE,
        "example_low": interval.low if interval else None,
        "example_high": interval.high if interval else None,
        "verdicts": verdict_rows(),
        "versions": list(JUDGE_VERSIONS.items()),
        "glossary": sorted(GLOSSARY.items()),
        **set_rows(),
    }


def set_table(name: str) -> Table:
    """Return one of TABLES."""
    rows: Sequence[Mapping[str, object]]
    known = judge_constants()
    if name == "limits":
        rows = [{"device": one, **known["limits"][one]} for one in DEVICES]
    elif name == "verdicts":
        rows = verdict_rows()
    else:
        rows = set_rows()[name]
    return Table.of(tuple(rows[0]), rows)


def set_rows() -> dict[str, list[dict[str, str]]]:
    """Return the closed sets whose members have a name and a meaning, no more."""
    known = judge_constants()
    return {
        "trust": _pairs(verdicts.TRUST_MEANINGS, Trust.values),
        "isolation": _pairs(ISOLATION_MEANINGS, [name for name, _ in reversed(ISOLATIONS)]),
        "flags": _pairs(FLAGS, FLAGS),
        "patterns": _pairs(PATTERNS, known["patterns"]),
        "mechanisms": _pairs(MECHANISMS, known["mechanisms"]),
        "evidence": _pairs(EVIDENCE, known["evidence"]),
        "floors": [
            {"name": words.name, "code": code, "counted": words.counted, "means": words.means}
            for code, words in FLOOR_WORDS.items()
        ],
    }


def verdict_rows() -> list[dict[str, object]]:
    return [
        {
            "name": name,
            "means": verdicts.MEANINGS[name],
            "counts": name in COUNTED_VERDICTS,
            "mode": failure_mode(name),
        }
        for name, _ in VERDICTS
    ]


def _pairs(meanings: Mapping[str, str], names: Iterable[str]) -> list[dict[str, str]]:
    """Pair names with their meanings; a name that has no words yet is shown alone."""
    return [{"name": name, "means": meanings.get(name, "")} for name in names]


def _limits_row(device: str, known: JsonObject) -> dict[str, object]:
    """Return a row of the table of limits; times in seconds."""
    limits = known["limits"][device]
    numbers = [
        cells.decimal_cell(limits["build_s"], 0),
        cells.decimal_cell(limits["verify_s"], 0),
        cells.decimal_cell(limits["timed_s"], 0),
        cells.bytes_cell(limits["memory_bytes"]),
        cells.count_cell(limits["processes"]),
        cells.bytes_cell(limits["scratch_bytes"]),
    ]
    return {"name": DEVICES[device], "cells": cells.joined(numbers)}
