"""What the site stores of a problem, as the export writes it."""

from __future__ import annotations

from typing import Any


def _finding(answer: str, *, accepted: bool | None, **errors: float | None) -> dict[str, Any]:
    honest = answer == "reference"
    shown = {"answer": answer, "honest": honest, "accepted": accepted, "why": f"{answer} is so"}
    return {**shown, "errors": errors}


def _screened(profile: str, *findings: dict[str, Any]) -> dict[str, Any]:
    how = {"size": "tiny", "seeds": 102, "world_sizes": [2, 4], "device": "cpu", "torch": "2.13.0"}
    return {**how, "findings": [{"profile": profile, **found} for found in findings]}


HEALTH: dict[str, Any] = {
    "upstream": _screened(
        "upstream",
        _finding("a constant", accepted=True, float32=0.25, bfloat16=0.5),
    ),
    "hardened": _screened(
        "hardened",
        _finding("zeros", accepted=False, float32=1.33e11, bfloat16=None),
        _finding("low-precision", accepted=None),
        _finding("reference", accepted=True, float32=0.0, bfloat16=0.75),
    ),
}
BASELINE: dict[str, Any] = {
    "hardware": "h200x4",
    "gpus": ["NVIDIA H200, 580.159.04, 1980 MHz"] * 4,
    "world_size": 4,
    "size": "standard",
    "dtype": "bfloat16",
    "measured": "2026-11-21",
    "torch": "2.11.0",
    "nccl": "2.28.9",
    "us": 31.9,
    "quartiles_us": [31.5, 32.4],
    "bursts": 200,
    "peak_mib": 95,
    "errors": {"hardened bfloat16": 0.4},
    "current": True,
}
REFERENCE = "import torch\n\n\ndef reference(tensor):\n    return tensor.clone()\n"
COST = {"wire_bytes": 2048.0, "flops": 1024.0, "hbm_bytes": 4096.0, "exchanges": 1}
PAYLOAD: dict[str, Any] = {
    "source": "NVIDIA/nccl",
    "statement": "Sum the matrices of all ranks.\nReturn a fresh tensor.",
    "signature": [{"name": "tensor", "annotation": "Tensor", "default": None}],
    "outputs": ["sum"],
    "mutates": [],
    "mesh": ["world"],
    "sizes": {"tiny": {"m": 64, "n": 32}, "standard": {"m": 1024, "n": 1024}},
    "world_sizes": [2, 4, 8],
    "tolerances": {"float32": {"atol": 1e-4, "rtol": 1e-4}},
    "tolerance_reason": "default for the dtype",
    "known_issues": ["Upstream inputs are constant."],
    "reference_source": REFERENCE,
    "costs": {"standard": {"4": COST}, "tiny": {"2": COST}},
    "timed_arguments": {size: {"tensor": "{dtype} [1024, 1024]"} for size in ("standard", "tiny")},
    "topology": "every rank with every other",
    "requirements": {"peer_access": True, "multicast": False, "memory_gib": 8},
    "latency_bound_reason": None,
    "ranked_from": 2,
    "ranked_from_reason": None,
    "health": HEALTH,
    "baselines": [BASELINE],
}
