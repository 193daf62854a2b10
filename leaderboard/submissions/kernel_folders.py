"""Makes one kernel of each folder of an archive that has a `pkb.toml`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from evaluator.messages.manifest import BadManifestError, Manifest, manifest_of
from evaluator.messages.source_files import MANIFEST, MOST_BYTES, MOST_FILES, joined, parts_of
from leaderboard.kit.request_error import RequestError
from leaderboard.submissions.archives import Member


def by_folder(members: Sequence[Member]) -> dict[PurePath, list[Member]]:
    """Return the files of each kernel that has several, by its folder."""
    found = defaultdict(list)
    for member in members:
        if member.folder is not None:
            found[member.folder].append(member)
    return dict(found)


def joined_source(folder: PurePath, texts: dict[PurePath, str]) -> tuple[str, Manifest]:
    """Return the one text of a kernel's files, and what its manifest says. Raises RequestError."""
    files = {path.relative_to(folder).as_posix(): text for path, text in texts.items()}
    source = joined({path: text.removeprefix("\ufeff") for path, text in files.items()})
    if faults := [*_too_much(len(files), len(source.encode()))]:
        fix = "Leave out what the kernel does not need."
        raise RequestError("too_large", " ".join(faults), fix, status=413)
    return source, checked_manifest(source)


def checked_manifest(source: str) -> Manifest:
    """Read the manifest of a kernel of several files. Raises RequestError with all that
    is wrong with it."""
    try:
        return manifest_of(parts_of(source))
    except BadManifestError as error:
        says, fix = f"{error}.", f"Mend {MANIFEST}: docs/api.md lists its keys."
        raise RequestError("bad_manifest", says, fix, fields={"source": says}) from None


def _too_much(files: int, size_bytes: int) -> Iterator[str]:
    if files > MOST_FILES:
        yield f"The kernel has {files} files, and {MOST_FILES} are the most."
    if size_bytes > MOST_BYTES:
        yield f"The kernel has more than {MOST_BYTES >> 20} MiB."
