"""What a killed judge leaves behind goes with the next one; what a living one uses stays."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from evaluator.host import cgroup, freezer, held
from evaluator.host.leftovers import FOLDER_PREFIX, own_folder, remove_folder, remove_leftovers

# Where pids are counted anew, as in another container.
ELSEWHERE = ("unshare", "--pid", "--fork", "--mount-proc")
REMOVE = "from evaluator.host.leftovers import remove_leftovers; remove_leftovers()"


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
def test_what_cannot_be_made_whole_is_not_left_behind(tmp_path: Path) -> None:
    first, second, taken = (tmp_path / name for name in ("first", "second", "taken"))
    taken.mkdir()
    before = os.listdir("/proc/self/fd")
    with pytest.raises(FileExistsError), held.made(first, taken):
        raise AssertionError("it was there before")
    with pytest.raises(PermissionError), held.made(first, second):
        raise PermissionError
    assert list(tmp_path.iterdir()) == [taken]
    assert os.listdir("/proc/self/fd") == before
    with held.made(first):
        pass
    assert held.is_held(first)
    held.let_go(first)


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


@pytest.mark.skipif(os.getuid() != 0, reason="another namespace of pids needs root here")
@pytest.mark.parametrize("version", [1, 2])
def test_what_a_judge_in_another_container_uses_stays(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if version == 1:
        monkeypatch.setattr(cgroup, "v2_folder", lambda: cgroup.ROOT / "pkb-none")
    leaf, found, folder = (
        cgroup.create_leaf(1 << 30, 10),
        freezer.create_freezer(None),
        own_folder(),
    )
    if leaf is None or found is None or found.version != version:
        pytest.skip(f"this host delegates no leaf, or has no freezer of v{version}")
    found.freeze()
    subprocess.run([*ELSEWHERE, sys.executable, "-c", REMOVE], check=True)
    assert found.is_frozen
    assert Path(folder).exists()
    assert leaf.pids.exists()
    remove_folder(folder)
    assert found.remove()
    assert leaf.remove()
    assert not any(held.is_held(own) for own in (Path(folder), leaf.pids, *found.folders))


@pytest.mark.parametrize(
    ("left_mib", "is_waited_for"),
    [([900, 500, 100, 17, 3], True), ([9, 5, 3], False)],
    ids=["much", "little"],
)
def test_memory_of_the_dead_is_waited_for_while_it_is_being_freed(
    left_mib: list[int], is_waited_for: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = iter(left_mib)
    monkeypatch.setattr(cgroup.Leaf, "memory_bytes", property(lambda _: next(left) << 20))
    cgroup.Leaf(memory=tmp_path, pids=tmp_path, version=2).settle()
    assert (next(left, None) is None) is is_waited_for


def test_memory_that_stays_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroup.Leaf, "memory_bytes", 900 << 20)
    began = time.monotonic()
    cgroup.Leaf(memory=tmp_path, pids=tmp_path, version=2).settle()
    assert time.monotonic() - began < cgroup.SETTLE_S / 2


@pytest.mark.skipif(os.getuid() != 0, reason="cgroup leaves need root here")
@pytest.mark.parametrize("version", [1, 2])
def test_what_a_dead_judge_left_frozen_dies(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if version == 1:
        monkeypatch.setattr(cgroup, "v2_folder", lambda: cgroup.ROOT / "pkb-none")
    owner = dead_pid()
    monkeypatch.setattr(os, "getpid", lambda: owner)
    found = freezer.create_freezer(None)
    monkeypatch.undo()
    if found is None or found.version != version:
        pytest.skip(f"this host has no freezer of v{version}")
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as child:
        for folder in found.folders:
            (folder / "cgroup.procs").write_text(str(child.pid))
        found.freeze()
        while not found.is_frozen:
            pass
        for folder in found.folders:
            held.let_go(folder)  # as it has died
        child.kill()
        threading.Timer(0.1, child.wait).start()
        remove_leftovers()
    assert not any(folder.exists() for folder in found.folders)
    for fd in {found.switch_fd, found.state_fd, found.usage_fd} - {None}:
        os.close(fd)  # type: ignore[arg-type]
