"""Serves the client `pkb` as one file that Python runs, packed from this tree."""

from __future__ import annotations

import functools
import hashlib
import io
import zipfile
from pathlib import Path

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.http import parse_etags
from django.views.decorators.http import require_safe

from leaderboard.delivery.pages import PUBLIC

NAME = "pkb.pyz"
# ZIP's own epoch, and nothing compressed: the same tree has the same bytes wherever it is packed.
EPOCH = (1980, 1, 1, 0, 0, 0)
SHEBANG = b"#!/usr/bin/env python3\n"
CLIENT, MESSAGES = "evaluator/client", "evaluator/messages"
# What says what a kernel defines and which hosts it needs.
OF_MESSAGES = (
    "__init__.py",
    "answers.py",
    "archive_names.py",
    "asked_first.py",
    "dead_branches.py",
    "entry.py",
    "job.py",
    "manifest.py",
    "needs.py",
    "source_files.py",
    "source_text.py",
)
MAIN = """\
import sys

if sys.version_info < (3, 9):
    sys.exit("pkb needs Python 3.9 or newer; this is " + sys.version.split()[0])

from pkb.client.main import main

sys.exit(main())
"""


def packed(root: Path) -> bytes:
    """Return the file, made of the tree at `root`."""
    client = [path for path in (root / CLIENT).iterdir() if path.suffix in (".py", ".json")]
    files = {
        "__main__.py": MAIN.encode(),
        "pkb/__init__.py": f'__version__ = "{settings.SOFTWARE_VERSION}"\n'.encode(),
        **{f"pkb/client/{path.name}": path.read_bytes() for path in client},
        **{f"pkb/messages/{name}": (root / MESSAGES / name).read_bytes() for name in OF_MESSAGES},
    }
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, data in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, EPOCH), data)
    return SHEBANG + made.getvalue()


@functools.cache
def client() -> tuple[bytes, str]:
    """Return the file of this release and its SHA-256."""
    data = packed(settings.BASE_DIR)
    return data, hashlib.sha256(data).hexdigest()


@require_safe
def download(request: HttpRequest) -> HttpResponse:
    """Answer with the client, named by its SHA-256, or 304 to who has that."""
    data, digest = client()
    etag = f'"{digest}"'
    if etag in parse_etags(request.headers.get("If-None-Match", "")):
        response = HttpResponse(status=304)
    else:
        response = HttpResponse(data, content_type="application/zip")
        response["Content-Disposition"] = f'attachment; filename="{NAME}"'
    response["ETag"], response["Cache-Control"] = etag, PUBLIC
    return response
