"""Stores static files where brotli, which takes ten seconds, is not worth it."""

from __future__ import annotations

import functools

from whitenoise.compress import Compressor
from whitenoise.storage import CompressedManifestStaticFilesStorage


def gzipped() -> CompressedManifestStaticFilesStorage:
    """Return a storage whose files are hashed and compressed like others, by gzip alone."""
    storage = CompressedManifestStaticFilesStorage()
    storage.create_compressor = functools.partial(Compressor, use_brotli=False)
    return storage
