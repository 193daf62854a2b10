"""Vendored files are the ones their manifest names."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = [ROOT / "static/vendor", ROOT / "tests/leaderboard/vendor"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_every_vendored_file_has_a_licence_and_the_recorded_hash(folder: Path) -> None:
    packages = json.loads((folder / "vendor.json").read_text())
    recorded = {name: digest for package in packages for name, digest in package["files"].items()}
    present = {path.name for path in folder.iterdir()} - {"vendor.json"}
    assert present == set(recorded)
    for name, digest in recorded.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest, name
    assert all(package["licence"] and package["version"] for package in packages)
