"""Word what kernels run with, from the versions that a host says hello with.

The one place that words it: prompts, the page `/environment` and `pkb check` show what it returns.
Standard library only, as the site imports it.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path

PATH = Path(__file__).resolve().parents[1] / "fixtures" / "environments.json"
# Packages that a kernel may import: what to import, by the name that pip knows.
IMPORTS: Mapping[str, str] = {
    "torch": "torch",
    "triton": "triton",
    "numpy": "numpy",
    "cuda-bindings": "cuda.bindings",
    "cuda-tile": "cuda.tile",
    "cupy-cuda12x": "cupy",
    "cupy-cuda13x": "cupy",
    "einops": "einops",
    "helion": "helion",
    "nvidia-cutlass-dsl": "cutlass",
    "nvshmem4py-cu12": "nvshmem",
    "nvshmem4py-cu13": "nvshmem",
    "tilelang": "tilelang",
}
_OF_GPUS = "compute_capability"
# What else the page and prompts call by a name of their own; of several the first that is there.
_CALLED: Mapping[str, tuple[str, ...]] = {
    "Python": ("python",),
    "PyTorch": ("torch",),
    "CUDA": ("cuda", "nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12"),
    "nvcc": ("nvcc",),
    "Triton": ("triton",),
    "NCCL": ("nccl", "nvidia-nccl-cu13", "nvidia-nccl-cu12"),
    "compute capability": (_OF_GPUS,),
    "driver": ("driver",),
}
_DIGESTED = ("Python", "CUDA", "NCCL", "compute capability")  # a report says these as well
# Asked for by their distributions when a host says hello.
DISTRIBUTIONS = tuple(
    dict.fromkeys(
        [*IMPORTS, "ninja", *(name for names in _CALLED.values() for name in names if "-" in name)]
    )
)
# What a version looks like: hosts and sites say them, and models read them.
_VERSION = re.compile(r"[\w.+-]{1,40}", re.ASCII)
_OF_CUDA = re.compile(r"\+cu(\d{2})(\d)\b", re.ASCII)
# Modules of `utils` that a backend's text names; the other backends need none.
UTILS: Mapping[str, tuple[str, ...]] = {
    "cuda": ("utils.cuda_helpers",),
    "triton": ("utils.triton_utils",),
    "parallelkittens": ("utils.cuda_helpers", "utils.parallelkittens_runtime"),
}


# Languages of their own: a kernel in plain PyTorch uses none of them.
_NOT_PYTORCH = ("triton", "cuda.bindings", "cuda.tile", "cutlass", "helion", "tilelang")


def facts(versions: Mapping[str, str]) -> dict[str, str]:
    """Return the versions of what matters to a kernel, by the names that readers know."""
    known = _plain(versions)
    if "cuda" not in known and (found := _OF_CUDA.search(known.get("torch", ""))):
        known["cuda"] = f"{found[1]}.{found[2]}"
    named = ((label, [known[n] for n in names if n in known]) for label, names in _CALLED.items())
    return {label: values[0] for label, values in named if values}


def imports(versions: Mapping[str, str]) -> dict[str, str]:
    """Return the packages that a kernel may import, each with its version."""
    known = _plain(versions)
    return {module: known[name] for name, module in IMPORTS.items() if name in known}


def digest(versions: Mapping[str, str]) -> str:
    """Return ten digits that differ where kernels meet other software: the Python, what they may
    import and CUDA. The same of a hello and of a report."""
    named = {name: facts(versions).get(name) for name in _DIGESTED}
    text = json.dumps([named, imports(versions)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def _plain(versions: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in versions.items() if _VERSION.fullmatch(value)}


def environment_text(versions: Mapping[str, str], backend: str) -> str:
    """Describe a host's software to a model: versions, and the packages it may import."""
    own = facts(versions)
    told = [f"{label} {own[label]}" for label in _CALLED if label in own and label != "driver"]
    others = _NOT_PYTORCH if backend == "pytorch" else ()
    packages = [f"`{name}`" for name in imports(versions) if name not in others] or ["`torch`"]
    packages += [f"`{name}`" for name in UTILS.get(backend, ())]
    listed = f"{', '.join(packages[:-1])} and {packages[-1]}" if packages[1:] else packages[0]
    return (
        f"Versions: {', '.join(told)}. A kernel may import {listed}, and Python's standard library;"
        " nothing else is installed."
    )


def of_release(device: str, title: str = "") -> dict[str, str]:
    """Return the versions of the hosts that the release was judged on, `cpu` or `cuda`, with the
    compute capability of the GPU that the title of a class of hardware names."""
    known = _stored()
    found = dict(known[device])
    for name, value in known[_OF_GPUS].items():
        if device == "cuda" and name in title:
            found[_OF_GPUS] = value
    return found


@functools.cache
def _stored() -> Mapping[str, Mapping[str, str]]:
    found: Mapping[str, Mapping[str, str]] = json.loads(PATH.read_text())
    return found
