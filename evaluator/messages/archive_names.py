"""Says by its name what a file of an archive is. The client has this module too, so it runs on
Python 3.9."""

from __future__ import annotations

import re
from pathlib import PurePath, PurePosixPath
from typing import Optional

MAX_NAME_CHARS = 512
MAX_TOTAL_BYTES = 32 << 20  # of kernels and what tells of them
MAX_TRANSCRIPTS_BYTES = 128 << 20  # as they come, packed
# Of a whole archive that comes in parts, with headers and what nobody reads.
MAX_WHOLE_BYTES = MAX_TOTAL_BYTES + MAX_TRANSCRIPTS_BYTES + (32 << 20)
_DRIVE = re.compile(r"[A-Za-z]:")
# What tools put next to kernels without being asked.
_TOOLS = ("__MACOSX", "__pycache__")


def path_inside(name: str) -> Optional[PurePosixPath]:  # noqa: UP045 - Python 3.9
    """Return the path of a member below the root of its archive; `\\` separates folders, too.

    Return None for a name that leads out of the archive, or that cannot be shown.
    """
    path = PurePosixPath(name.replace("\\", "/"))
    leads_out = path.is_absolute() or ".." in path.parts or _DRIVE.match(name)
    if leads_out or not name.isprintable() or not path.parts or len(name) > MAX_NAME_CHARS:
        return None
    return path


def is_kernel(path: PurePath) -> bool:
    """Return True for a Python file that is to be judged. All else next to kernels is passed over:
    notes, other languages, hidden files, and what desktop systems and Python add."""
    is_added = any(part.startswith(".") or part in _TOOLS for part in path.parts)
    return path.suffix == ".py" and path.name != "__init__.py" and not is_added
