"""What a killed judge leaves behind goes with the next one; what a living one uses stays."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from evaluator.host import cgroup
from evaluator.host.leftovers import FOLDER_PREFIX, own_folder, remove_leftovers


def dead_pid() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_only_folders_of_the_dead_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mine = Path(own_folder())
    left = tmp_path / f"{FOLDER_PREFIX}{dead_pid()}-abc"
    left.mkdir()
    (left / "store").write_text("x")
    strange = tmp_path / f"{FOLDER_PREFIX}me-abc"
    strange.mkdir()
    remove_leftovers()
    assert sorted(tmp_path.iterdir()) == sorted([mine, strange])


@pytest.mark.skipif(os.getuid() != 0, reason="cgroup leaves need root here")
def test_only_leaves_of_the_dead_are_removed() -> None:
    mine = cgroup.create_leaf(1 << 30, 10)
    if mine is None:
        pytest.skip("this host delegates no cgroup")
    left = [parent / f"{cgroup.PREFIX}{dead_pid()}-abc" for parent in cgroup.parents()]
    for path in left:
        path.mkdir()
    remove_leftovers()
    assert not any(path.exists() for path in left)
    assert mine.pids.exists()
    assert mine.remove()
