"""Reads runs of KernelBench's scripts on PKB's problems.

`runs/<name>/level_<l>_problem_<p>_sample_<s>_kernel.py`, and beside them `generation_config.yaml`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ..messages.entry import has_entry
from .attempts import Attempt
from .catalogue import problem_called
from .failures import Misused
from .recorded import Wanted, raise_all, samplings, text_of
from .sources import MAX_SOURCE_BYTES, backend_called, read

CONFIG = "generation_config.yaml"
_KERNEL = re.compile(r"level_(\d{1,3})_problem_(\d{1,4})_sample_(\d{1,3})_kernel\.py", re.ASCII)
_VALUE = re.compile(r"^(?P<name>[a-z_]{1,32}):[ ]*(?P<value>[^\n#]{1,200})$", re.MULTILINE)
_NUMBER = re.compile(r"-?\d{1,12}(?:\.\d{1,12})?", re.ASCII)
_DTYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}


def is_run(folder: Path) -> bool:
    """Return True for a folder with kernels that are called as such a run calls them."""
    return any(_KERNEL.fullmatch(path.name) for path in folder.glob("level_*_kernel.py"))


def attempts(folder: Path, wanted: Wanted) -> tuple[list[Attempt], dict[str, Any]]:
    """Return the attempts of a run and what its configuration says. Raises Misused.

    A level's problem numbers are PKB's if its kernels define `solution`.
    """
    config = _config(folder / CONFIG)
    backend = backend_called(wanted.backend or config.get("backend"))
    found = [
        (match, path)
        for path in sorted(folder.glob("level_*_kernel.py"))
        if (match := _KERNEL.fullmatch(path.name))
    ]
    levels = sorted({int(match[1]) for match, _ in found})
    faults = [] if backend else [f"{folder}: no backend is named; give --backend"]
    if len(levels) > 1 and wanted.level is None:
        faults.append(f"{folder}: levels {', '.join(map(str, levels))}; give PKB's by --level")
    raise_all(faults)
    level = levels[0] if wanted.level is None else wanted.level
    own = [(match, path) for match, path in found if int(match[1]) == level]
    sources = {path: read(path, MAX_SOURCE_BYTES) for _, path in own}
    if own and not any(has_entry(each.decode(errors="replace")) for each in sources.values()):
        fix = "Those of KernelBench's own problems are no kernels of PKB's."
        raise Misused(f"No kernel of {folder}, level {level}, defines `solution`.", fix)
    made = [
        Attempt(
            problem=problem_called(match[2]),
            number=int(match[3]) + 1,
            backend=backend or "",
            source=sources[path],
            ended="answered" if sources[path].strip() else "no_answer",
        )
        for match, path in own
    ]
    return made, _told(config)


def _told(config: dict[str, str]) -> dict[str, Any]:
    numbers = {name: _number(value) for name, value in config.items()}
    return {
        "model": config.get("model_name", "").rpartition("/")[2] or None,
        "provider": config.get("server_type"),
        "harness_version": "KernelBench",
        "dtype": _DTYPES.get(config.get("precision", "")),
        "sampling": samplings(
            {name: value for name, value in numbers.items() if value is not None}
        ),
    }


def _config(path: Path) -> dict[str, str]:
    """Return the plain values of the configuration: a line of YAML each."""
    if not path.is_file():
        return {}
    found = ((each["name"], each["value"]) for each in _VALUE.finditer(text_of(path)))
    plain = {name: value.strip().strip("'\"") for name, value in found}
    return {name: value for name, value in plain.items() if value not in ("null", "~", "")}


def _number(text: str) -> float | None:
    if not _NUMBER.fullmatch(text):
        return None
    return float(text) if "." in text else int(text)
