"""The lists of packages agree: what one of them pins, the constraints pin to the same version."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "requirements"


def _pins(path: Path) -> dict[str, str]:
    found = re.findall(r"^([\w-]+)(?:\[[\w,]+\])?==(\S+)$", path.read_text(), re.M)
    return {name.lower().replace("_", "-"): version for name, version in found}


def test_every_requirement_is_exact_and_stands_in_the_constraints() -> None:
    pinned = _pins(FOLDER / "constraints.txt")
    for path in {*FOLDER.glob("*.txt")} - {FOLDER / "constraints.txt"}:
        lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
        assert len(_pins(path)) == len(lines), path.name
        assert _pins(path).items() <= pinned.items(), path.name


def test_setuptools_has_an_upper_bound_wherever_torch_is_installed() -> None:
    assert "setuptools" in _pins(FOLDER / "constraints.txt")
