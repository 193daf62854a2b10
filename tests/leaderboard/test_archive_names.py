"""Archives as tools make them: the site and `pkb` take the same files, and refuse the same."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from evaluator.client import sources
from evaluator.client.failures import Misused
from leaderboard.kit.request_error import RequestError
from leaderboard.submissions.archives import read_archive
from leaderboard.submissions.sources import handed_in
from tests.leaderboard.uploads import GOOD, NAME, make_tar, make_zip, tar_of_entries

OTHER = "2_allgather_cuda.py"


def _tar(files: Mapping[str, bytes], *links: tuple[str, bytes]) -> bytes:
    """A tar with links or devices of (name, kind) next to files."""
    entries = [(tarfile.TarInfo(name), data) for name, data in files.items()]
    for name, kind in links:
        info = tarfile.TarInfo(name)
        info.type, info.linkname = kind, "elsewhere"
        entries.append((info, b""))
    return tar_of_entries(*entries)


def _zip_with_link(name: str) -> bytes:
    out = io.BytesIO(make_zip({NAME: GOOD}))
    with zipfile.ZipFile(out, "a") as archive:
        info = zipfile.ZipInfo(name)
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "elsewhere")
    return out.getvalue()


def _plain_tar() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        info = tarfile.TarInfo(NAME)
        info.size = len(GOOD)
        archive.addfile(info, io.BytesIO(GOOD))
    return out.getvalue()


def _beside(*names: str) -> dict[str, bytes]:
    return {NAME: GOOD, **dict.fromkeys(names, b"\0\1\2")}


TAKEN: list[Any] = [
    pytest.param(make_zip({NAME: GOOD}), [NAME], id="zip"),
    pytest.param(make_tar({NAME: GOOD}), [NAME], id="tar"),
    pytest.param(make_zip({NAME: GOOD, OTHER: GOOD}), [NAME, OTHER], id="two"),
    pytest.param(make_tar({f"./{NAME}": GOOD}), [NAME], id="tar -C dir ."),
    pytest.param(make_zip({f"kernels/{NAME}": GOOD}), [f"kernels/{NAME}"], id="folder"),
    pytest.param(make_zip({f"kernels\\{NAME}": GOOD}), [f"kernels/{NAME}"], id="Windows"),
    pytest.param(make_tar({f"kernels\\{NAME}": GOOD}), [f"kernels/{NAME}"], id="Windows, tar"),
    pytest.param(make_zip({f"run 12:30/{NAME}": GOOD}), [f"run 12:30/{NAME}"], id="time"),
    pytest.param(make_zip({f"läufe/{NAME}": GOOD}), [f"läufe/{NAME}"], id="umlaut"),
    pytest.param(make_zip({NAME: b"\xef\xbb\xbf" + GOOD}), [NAME], id="BOM"),
    pytest.param(make_zip({NAME: GOOD.replace(b"\n", b"\r\n")}), [NAME], id="CRLF"),
    pytest.param(make_zip({NAME: b""}), [NAME], id="empty file"),
    pytest.param(make_zip(_beside("__MACOSX/._" + NAME)), [NAME], id="macOS zip"),
    pytest.param(make_tar(_beside("._" + NAME)), [NAME], id="macOS tar"),
    pytest.param(make_zip(_beside(".DS_Store", "Thumbs.db", "desktop.ini")), [NAME], id="desktops"),
    pytest.param(make_zip(_beside("README", "README.md", "LICENSE")), [NAME], id="notes"),
    pytest.param(make_zip(_beside("a.cu", "a.cuh", "b.cpp", "b.h")), [NAME], id="languages"),
    pytest.param(make_zip(_beside("__pycache__/x.py", "x.pyc", "x.pyo")), [NAME], id="caches"),
    pytest.param(make_zip(_beside("pkg/__init__.py")), [NAME], id="package"),
    pytest.param(make_zip(_beside(".venv/lib/x.py", ".git/x.py")), [NAME], id="hidden folders"),
    pytest.param(make_zip(_beside("Makefile", "run.sh", "a.so", "a.o")), [NAME], id="builds"),
    pytest.param(make_zip(_beside("pyproject.toml", "uv.lock", "out.csv")), [NAME], id="tables"),
    pytest.param(make_zip(_beside("x.ipynb", "x.pt", "x.png")), [NAME], id="results"),
    pytest.param(_tar({NAME: GOOD}, ("latest", tarfile.SYMTYPE)), [NAME], id="link to latest"),
    pytest.param(_tar({NAME: GOOD}, ("x.md", tarfile.LNKTYPE)), [NAME], id="hard link"),
    pytest.param(_tar({NAME: GOOD}, ("pipe", tarfile.FIFOTYPE)), [NAME], id="pipe"),
    pytest.param(_tar({NAME: GOOD}, ("kernels", tarfile.DIRTYPE)), [NAME], id="folder entry"),
    pytest.param(_zip_with_link("latest"), [NAME], id="link in a zip"),
]

REFUSED: list[Any] = [
    pytest.param(make_zip({f"../{NAME}": GOOD}), "not a path inside", id="zip slip"),
    pytest.param(make_tar({f"a/../../{NAME}": GOOD}), "not a path inside", id="tar slip"),
    pytest.param(make_zip({f"..\\{NAME}": GOOD}), "not a path inside", id="Windows slip"),
    pytest.param(make_tar({f"/{NAME}": GOOD}), "not a path inside", id="absolute"),
    pytest.param(make_zip({f"\\{NAME}": GOOD}), "not a path inside", id="Windows root"),
    pytest.param(make_zip({f"C:\\{NAME}": GOOD}), "not a path inside", id="drive"),
    pytest.param(make_zip({f"a\n{NAME}": GOOD}), "not a path inside", id="newline"),
    pytest.param(make_zip({"x" * 600 + ".py": GOOD}), "not a path inside", id="long name"),
    pytest.param(_tar({}, (NAME, tarfile.SYMTYPE)), "a link or a device", id="kernel is a link"),
    pytest.param(_tar({}, (NAME, tarfile.LNKTYPE)), "a link or a device", id="kernel, hard link"),
    pytest.param(_tar({}, (NAME, tarfile.CHRTYPE)), "a link or a device", id="kernel, device"),
    pytest.param(_zip_with_link(OTHER), "a link or a device", id="kernel is a link in a zip"),
    pytest.param(make_zip({NAME: GOOD})[:60], "damaged", id="cut"),
]


def _of_client(data: bytes, folder: Path) -> list[str]:
    path = folder / ("kernels.ZIP" if data[:2] == b"PK" else "kernels.tar.gz")
    path.write_bytes(data)
    return [str(member.path) for member in sources.members(path)]


def _of_site(data: bytes) -> list[str]:
    found = handed_in(read_archive(io.BytesIO(data)), 1)
    if found.fault:
        raise found.fault
    return [one.where for one in found.candidates]


@pytest.mark.parametrize(("data", "names"), TAKEN)
def test_both_take_the_same(data: bytes, names: list[str], tmp_path: Path) -> None:
    assert _of_site(data) == _of_client(data, tmp_path) == names


@pytest.mark.parametrize(("data", "says"), REFUSED)
def test_both_refuse_the_same(data: bytes, says: str, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=says):
        _of_site(data)
    with pytest.raises(Misused, match=says):
        _of_client(data, tmp_path)


@pytest.mark.parametrize("name", ["k.tar", "k.tar.xz", "k.TAR.BZ2", "k.7z", "k.rar"])
def test_other_archives_are_refused_with_what_to_do(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(_plain_tar())
    with pytest.raises(Misused, match="neither a zip nor a tar"):
        sources.members(tmp_path / name)
    with pytest.raises(RequestError, match="neither a zip nor a tar"):
        _of_site(_plain_tar())


def test_a_folder_has_the_kernels_that_its_archive_has(tmp_path: Path) -> None:
    for name in (NAME, "README", "__pycache__/x.py", "pkg/__init__.py", ".x/y.py", "a.cu"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(GOOD)
    found = [member.path for member in sources.members(tmp_path)]
    assert found == [PurePosixPath(tmp_path.name, NAME)]
