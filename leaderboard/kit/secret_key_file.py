"""Makes the secret key of a site that has none. Standard library only: `make up` has no more."""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from pathlib import Path


def secret_key_path(folder: Path) -> Path:
    """Return the file that holds the key, made on first use and readable by its owner only."""
    path = folder / "secret_key"
    if not path.exists():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "w") as file:
            file.write(secrets.token_urlsafe(50))
        # A link appears whole or not at all, so two processes starting at once agree on one key.
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
        os.unlink(draft)
    return path
