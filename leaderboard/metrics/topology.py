"""Makes the hardware topology text that a model is shown, of a class of hardware. No Django.

The one place that makes it: pages, twins and API show what it returns.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from leaderboard.kit.json_types import JsonObject
from leaderboard.metrics.floors import DATASHEETS, Limits, gpu_called, limits_of

# A pair with this share of a GPU's whole link rate cannot hang on a mesh of direct links, where
# three GPUs and more share it.
SHARE_OF_A_SWITCH = 0.6
NO_MULTICAST = (
    "NVLink multicast (NVLS, multimem instructions, in-switch reductions) must not be used."
)


class HardwareClass(NamedTuple):
    """Describes a class of hardware. `pair_gb_s` is the least that a pair of its GPUs was measured
    to reach one way; None where nobody has measured it."""

    slug: str
    title: str
    device: str
    ranks: int
    pair_gb_s: float | None = None


class Node(NamedTuple):
    """Holds what vendors state of a GPU's memory and of the boards it is sold on: those of
    `switched_from` GPUs join them through a switch."""

    memory_gb: int
    memory: str
    nvlink: int
    links: int
    switched_from: int
    source: str


@functools.cache
def nodes() -> Mapping[str, Node]:
    """Return them by what floors.Limits calls each GPU."""
    data = json.loads(DATASHEETS.read_text())
    return {data["gpus"][name]["gpu"]: Node(**facts) for name, facts in data["nodes"].items()}


def hardware_text(hardware: HardwareClass) -> str:
    """Return the class in sentences: GPUs, their memory, the links between them, and what kernels
    must not use."""
    if hardware.device == "cpu":
        return (
            f"Up to {hardware.ranks} ranks, each a process on the processor cores of one host "
            f"({hardware.title}). No GPU and no NVLink: ranks exchange data through the host's "
            "memory, with gloo."
        )
    if hardware.ranks == 1:
        return (
            f"One {gpu_called(hardware.title)}, which all ranks share, each as its only GPU: what "
            f"is right is told there, and not how fast it is. {NO_MULTICAST}"
        )
    limits = limits_of(hardware.title)
    if limits is None:
        return (
            f"One node with {hardware.ranks} x {gpu_called(hardware.title)}, one rank a GPU. "
            f"Its memory and links are not in the site's datasheets. {NO_MULTICAST}"
        )
    node = nodes()[limits.gpu]
    return (
        f"One node with {hardware.ranks} x NVIDIA {limits.gpu}, one rank a GPU. Each GPU has "
        f"{node.memory_gb} GB of {node.memory} at {limits.hbm_gb_s:,.0f} GB/s. They are joined by "
        f"NVLink {node.nvlink}, {node.links} links a GPU: {limits.link_gb_s:g} GB/s in each "
        f"direction from a GPU to all others together. {_wiring(hardware, limits, node)} "
        f"Each GPU can read and write the memory of the others. {NO_MULTICAST}"
    )


def _wiring(hardware: HardwareClass, limits: Limits, node: Node) -> str:
    """Say whether GPUs hang on a switch or on each other, as measured, else as boards are sold."""
    count, pair = hardware.ranks, hardware.pair_gb_s
    measured = f" (measured: {pair:.0f} GB/s)" if pair else ""
    if pair and pair >= SHARE_OF_A_SWITCH * limits.link_gb_s:
        if count == 2:
            return f"The two have the whole of it between them{measured}."
        return f"A switch (NVSwitch) joins them: any pair can have the whole of it{measured}."
    if pair:
        return f"They form a mesh of direct links: a pair has only its share of it{measured}."
    if count >= node.switched_from:
        return "A switch (NVSwitch) joins them: any pair can have the whole of it."
    return "Whether a switch or a mesh of direct links joins them has not been measured."


def problem_text(hardware: HardwareClass, payload: JsonObject) -> str | None:
    """Return what a model that writes a kernel for this problem is shown of the class; None where
    the problem cannot be judged on it."""
    fitting = [ranks for ranks in payload["world_sizes"] if ranks <= hardware.ranks]
    if not fitting:
        return None
    ranks = " or ".join(filter(None, (", ".join(map(str, fitting[:-1])), str(fitting[-1]))))
    return (
        f"{hardware_text(hardware)} The problem runs on {ranks} ranks there. "
        f"Who exchanges data with whom: {payload['topology']}."
    )


def records(classes: Mapping[str, HardwareClass], payload: JsonObject) -> list[dict[str, Any]]:
    """Return {hardware, title, text} of every class that can judge the problem, by its slug."""
    texts = ((one, problem_text(one, payload)) for _, one in sorted(classes.items()))
    return [{"hardware": one.slug, "title": one.title, "text": text} for one, text in texts if text]
