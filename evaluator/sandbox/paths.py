"""Names files of the judging host as readers see them: which file it is, and not in whose
folder."""

from __future__ import annotations

import functools
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from evaluator.sandbox.sandbox import REPOSITORY

# A folder of this host, and what is written in its place; both end with a slash or are empty.
Names = Sequence[tuple[str, str]]


def neutral(text: str, names: Names | None = None) -> str:
    """Replace this host's path in untrusted `text`, by `evaluator/rank/runner.py` and so on."""
    for folder, name in _own() if names is None else names:
        text = text.replace(folder, name)
    return text


@functools.cache
def _own() -> Names:
    paths = sysconfig.get_paths()
    return named(
        repository=REPOSITORY,
        packages=[Path(paths["purelib"]), Path(paths["platlib"])],
        library=[Path(paths["stdlib"]), Path(paths["platstdlib"])],
        prefixes=[Path(sys.prefix), Path(sys.base_prefix)],
        home=_home(),
    )


def _home() -> Path | None:
    """Return the user's folder; None of a user whom this host does not know, as in a container."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def named(
    *,
    repository: Path,
    packages: Sequence[Path],
    library: Sequence[Path],
    prefixes: Sequence[Path],
    home: Path | None,
) -> Names:
    """Return inner folders before those that they lie in; links as they are written and as they
    lead."""
    found = {
        **dict.fromkeys(packages, "site-packages/"),
        **{folder: f"lib/{folder.name}/" for folder in library},
        **{repository / name: f"{name}/" for name in ("evaluator", "problems")},
    }
    # What lies directly below / is of no owner, and its name stands in other paths too.
    others = {**dict.fromkeys(prefixes, "python/"), repository: ""}
    if home is not None:
        others[home] = "~/"
    deep = {folder: name for folder, name in others.items() if len(folder.parts) > 2}
    spelt = {
        f"{way}/": name
        for folder, name in (deep | found).items()
        for way in (folder, folder.resolve())
    }
    return sorted(spelt.items(), key=lambda pair: -len(pair[0]))
