"""Packs files as a tar.gz whose bytes depend on them alone."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from typing import Any


def packed(files: Mapping[str, bytes]) -> bytes:
    """Return a tar.gz of files by their paths."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o644
            archive.addfile(entry, io.BytesIO(data))
    return compressed(plain.getvalue())


def compressed(data: bytes) -> bytes:
    """Return bytes packed by gzip, the same by every version of Python: `gzip.compress` is not."""
    made = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=made, mtime=0) as file:
        file.write(data)
    return made.getvalue()


def form(fields: Mapping[str, object], archive: bytes) -> tuple[bytes, str]:
    """Return a form with an archive, and its content type."""
    # Cannot occur in what it parts: it is made of it.
    digest = hashlib.sha256(repr(sorted(fields.items())).encode() + archive)
    boundary = f"pkb-{digest.hexdigest()}"
    parts = []
    for name, value in fields.items():
        head = f'Content-Disposition: form-data; name="{name}"'
        parts.append(f"--{boundary}\r\n{head}\r\n\r\n{value}\r\n".encode())
    head = 'Content-Disposition: form-data; name="archive"; filename="kernels"'
    kind = "Content-Type: application/octet-stream"
    parts.append(f"--{boundary}\r\n{head}\r\n{kind}\r\n\r\n".encode() + archive + b"\r\n")
    parts.append(f"--{boundary}--\r\n".encode())
    return b"".join(parts), f"multipart/form-data; boundary={boundary}"


def digest_of(fields: Mapping[str, Any], archive: bytes = b"") -> str:
    """Return the SHA-256 that stands for a request: the same is sent twice at no harm."""
    said = json.dumps({**fields}, sort_keys=True).encode()
    return hashlib.sha256(said + b"\0" + hashlib.sha256(archive).digest()).hexdigest()
