"""Uploads for tests: kernels, archives, and what is stored of them."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

from rest_framework.test import APIClient

from leaderboard.models import (
    Kernel,
    LanguageModel,
    Run,
    Source,
    Submission,
)

URL = "/api/v1/submissions"


GOOD = b"def solution(tensor):\n    return tensor\n"


NAME = "1_allreduce_pytorch.py"


ONE: Mapping[str, Any] = {
    **{"model": "GPT-5.5", "vendor": "OpenAI", "harness": "zero-shot"},
    **{"problem": "allreduce", "backend": "pytorch", "source": GOOD.decode()},
}


ABOUT = {"model": "GPT-5.5", "harness": "zero-shot"}


Send = Callable[..., Any]


def act(client: APIClient, found: Submission, verb: str, **body: str) -> Any:
    """Do to a submission by the API what its owner may: publish, withdraw, rerun."""
    return client.post(f"/api/v1/submissions/{found.pk}/{verb}", body, format="json")


def make_zip(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def make_tar(files: Mapping[str, bytes]) -> bytes:
    return tar_of_entries(*((tarfile.TarInfo(name), data) for name, data in files.items()))


def tar_of_entries(*entries: tuple[tarfile.TarInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for info, data in entries:
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def stored() -> list[int]:
    return [m.objects.count() for m in (Submission, Kernel, Run, Source, LanguageModel)]
