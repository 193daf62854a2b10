"""Finds static patterns in a submission's source. They annotate a report and never decide a
verdict."""

from __future__ import annotations

import re

PATTERNS = {
    "uses_nccl": r"\b(?:all_reduce|all_gather\w*|reduce_scatter\w*|all_to_all\w*|broadcast|isend"
    r"|irecv|batch_isend_irecv|ncclAllReduce|ncclAllGather|ncclReduceScatter|ncclSend)\s*\(",
    "uses_vendor_lib": r"\b(?:cublas|cudnn|cutlass|nvshmem|torch\.(?:mm|matmul|bmm)\b)",
    "static:ctypes": r"\bctypes\b",
    "static:frames": r"\b_getframe\b|\binspect\.(?:stack|currentframe)\b",
    "static:garbage-collector": r"\bgc\.get_(?:objects|referrers)\b",
    "static:processes": r"\bos\.(?:fork|exec\w*|kill|system|posix_spawn)\b|\bsubprocess\b"
    r"|\bmultiprocessing\b",
    "static:threads": r"\bthreading\b|\bconcurrent\.futures\b|std::thread|pthread_create",
    "static:proc-filesystem": r"/proc/",
    "static:patched-clock": r"\btime\.(?:time|monotonic|perf_counter)\w*\s*=",
    "static:patched-comparison": r"\b(?:allclose|equal|isclose)\s*=",
    "static:side-stream": r"\bcuda\.Stream\b|cudaStreamCreate",
    "static:cuda-graph": r"\bCUDAGraph\b|cudaGraphLaunch",
    "static:seeding": r"\bmanual_seed\s*\(",
}
MOST_LINES = 20
_COMPILED = {flag: re.compile(pattern) for flag, pattern in PATTERNS.items()}


def scan_source(source: str) -> tuple[str, ...]:
    """Return the flags whose patterns the source shows."""
    return tuple(flag for flag, pattern in _COMPILED.items() if pattern.search(source))


def lines_of(source: str) -> dict[str, list[int]]:
    """Return for each flag found the first lines that show it (from 1), at most MOST_LINES."""
    found: dict[str, list[int]] = {}
    for number, line in enumerate(source.split("\n"), start=1):
        for flag, pattern in _COMPILED.items():
            if len(found.get(flag, ())) < MOST_LINES and pattern.search(line):
                found.setdefault(flag, []).append(number)
    return found
