"""Makes the hardware topology text that a model is shown, of a class of hardware.

The one place that makes it: prompts, pages, twins and API show what it returns. Standard library
only, as the site imports it.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
DATASHEETS = FIXTURES / "datasheets.json"

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
    """Holds what vendors state of a GPU's memory and links (GB/s one way, all together), and of the
    boards it is sold on: those of `switched_from` GPUs join them through a switch."""

    gpu: str
    link_gb_s: float
    hbm_gb_s: float
    memory_gb: int
    memory: str
    nvlink: int
    links: int
    switched_from: int
    source: str


@functools.cache
def nodes() -> Mapping[str, Node]:
    """Return them by the name that a driver gives the GPU, without its vendor."""
    data = json.loads(DATASHEETS.read_text())
    rates = ("gpu", "link_gb_s", "hbm_gb_s")
    return {
        name: Node(**{rate: data["gpus"][name][rate] for rate in rates}, **facts)
        for name, facts in data["nodes"].items()
    }


def gpu_called(title: str) -> str:
    """Return `NVIDIA H200`, of `4 x NVIDIA H200`; other titles whole."""
    return re.sub(r"^\d+ x ", "", title.strip())


def class_called(text: str) -> HardwareClass:
    """Return the class that `cpu`, a calibration of the release (`h200x4`) or a title as hosts have
    it (`8 x NVIDIA B200`) stands for. Raises ValueError."""
    if text == "cpu":
        return HardwareClass("cpu", "CPU", "cpu", 8)
    if titled := re.fullmatch(r"(\d{1,3}) x \S.*", text):
        return HardwareClass(text, text, "cuda", int(titled[1]))
    measured = {path.stem.partition("-")[2]: path for path in FIXTURES.glob("calibration-*.json")}
    if text not in measured:
        known = ", ".join(["cpu", *sorted(measured)])
        raise ValueError(f"no hardware {text!r}: use {known}, or a title as '8 x NVIDIA B200'")
    return measured_class(text, json.loads(measured[text].read_text()))


def measured_class(slug: str, data: Mapping[str, Any]) -> HardwareClass:
    """Return the class of hardware that a calibration is of."""
    gpus = data["gpus"]
    title = f"{len(gpus)} x {gpus[0]}"
    return HardwareClass(slug, title, "cuda", data["world_size"], slowest_pair(data))


def pairs(data: Mapping[str, Any]) -> dict[tuple[int, int], float]:
    """Return a calibration's GB/s from one GPU to another, by ordered pair."""
    found = {}
    for row in data["measurements"]:
        start, _, end = row["where"].partition(" to ")
        if row["quantity"] == "link" and start.isdigit() and end.isdigit():
            found[int(start), int(end)] = float(row["median"])
    return found


def slowest_pair(data: Mapping[str, Any] | None) -> float | None:
    """Return the least GB/s from one GPU to another; None where no pair was measured."""
    return min(pairs(data).values(), default=None) if data else None


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
    node = nodes().get(gpu_called(hardware.title).removeprefix("NVIDIA "))
    if node is None:
        return (
            f"One node with {hardware.ranks} x {gpu_called(hardware.title)}, one rank a GPU. "
            f"Its memory and links are not in the site's datasheets. {NO_MULTICAST}"
        )
    return (
        f"One node with {hardware.ranks} x NVIDIA {node.gpu}, one rank a GPU. Each GPU has "
        f"{node.memory_gb} GB of {node.memory} at {node.hbm_gb_s:,.0f} GB/s. They are joined by "
        f"NVLink {node.nvlink}, {node.links} links a GPU: {node.link_gb_s:g} GB/s in each "
        f"direction from a GPU to all others together. {_wiring(hardware, node)} "
        f"Each GPU can read and write the memory of the others. {NO_MULTICAST}"
    )


def _wiring(hardware: HardwareClass, node: Node) -> str:
    """Say whether GPUs hang on a switch or on each other, as measured, else as boards are sold."""
    count, pair = hardware.ranks, hardware.pair_gb_s
    measured = f" (measured: {pair:.0f} GB/s)" if pair else ""
    if pair and pair >= SHARE_OF_A_SWITCH * node.link_gb_s:
        if count == 2:
            return f"The two have the whole of it between them{measured}."
        return f"A switch (NVSwitch) joins them: any pair can have the whole of it{measured}."
    if pair:
        return f"They form a mesh of direct links: a pair has only its share of it{measured}."
    if count >= node.switched_from:
        return "A switch (NVSwitch) joins them: any pair can have the whole of it."
    return "Whether a switch or a mesh of direct links joins them has not been measured."


def problem_text(hardware: HardwareClass, problem: Mapping[str, Any]) -> str | None:
    """Return what a model that writes a kernel for this problem, as the catalogue has it, is shown
    of the class; None where the problem cannot be judged on it."""
    fitting = [ranks for ranks in problem["world_sizes"] if ranks <= hardware.ranks]
    if not fitting:
        return None
    ranks = " or ".join(filter(None, (", ".join(map(str, fitting[:-1])), str(fitting[-1]))))
    return (
        f"{hardware_text(hardware)} The problem runs on {ranks} ranks there. "
        f"Who exchanges data with whom: {problem['topology']}."
    )


def records(
    classes: Mapping[str, HardwareClass], problem: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return {hardware, title, text} of every class that can judge the problem, by its slug."""
    texts = ((one, problem_text(one, problem)) for _, one in sorted(classes.items()))
    return [{"hardware": one.slug, "title": one.title, "text": text} for one, text in texts if text]
