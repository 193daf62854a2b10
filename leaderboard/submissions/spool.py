"""Keeps what is too much for memory in a file without a name, until nobody needs it."""

from __future__ import annotations

import io
import tempfile
import weakref
from dataclasses import dataclass
from typing import IO

from django.conf import settings


class Spool:
    """Keeps pieces one after the other. Its file goes with the last of who holds one."""

    def __init__(self) -> None:
        self._file: IO[bytes] = scratch_file()
        weakref.finalize(self, self._file.close)

    def keep(self, data: bytes) -> Spooled:
        """Write a piece and return what reads it."""
        start = self._file.seek(0, io.SEEK_END)
        self._file.write(data)
        return Spooled(spool=self, start=start, size=len(data))

    def read(self, start: int, size: int) -> bytes:
        """Return a piece."""
        self._file.seek(start)
        return self._file.read(size)


@dataclass(frozen=True, kw_only=True)
class Spooled:
    """Names a piece of a spool."""

    spool: Spool
    start: int
    size: int

    def read(self) -> bytes:
        """Return it."""
        return self.spool.read(self.start, self.size)


def scratch_file() -> IO[bytes]:
    """Return an empty file where uploads wait, too: nothing else can open it."""
    return tempfile.TemporaryFile(dir=settings.FILE_UPLOAD_TEMP_DIR)
