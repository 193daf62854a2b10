"""Names the mechanisms by which bytes move between GPUs, in a reader's words. Pure."""

from __future__ import annotations

from leaderboard.metrics.verdicts import words

# Seen at work only where ranks have a GPU each: else collectives go through host memory.
NCCL = "nccl"
NAMES = {
    NCCL: "NCCL",
    "gloo": "gloo",
    "nvshmem": "NVSHMEM",
    "sm_load_store": "loads and stores by kernels",
    "tma": "TMA",
    "cuda_graph": "CUDA graph",
}


def mechanism_name(tag: str) -> str:
    """Return what pages call the mechanism that reports call `tag`."""
    return NAMES.get(tag, words(tag))
