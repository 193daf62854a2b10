"""On what a benchmark on GPUs was measured."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

from evaluator.messages.report import JUDGE_VERSION
from evaluator.sandbox.sandbox import REPOSITORY


def provenance() -> dict[str, Any]:
    import torch

    query = ("nvidia-smi", "--query-gpu=name,driver_version,clocks.max.sm", "--format=csv,noheader")
    commit = _output("git", "-c", "safe.directory=*", "-C", str(REPOSITORY), "rev-parse", "HEAD")
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit.strip() or None,
        "judge": JUDGE_VERSION,
        "gpus": _output(*query).strip().splitlines(),
        "python": sys.version.partition(" ")[0],
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "nccl": None if torch.version.cuda is None else list(torch.cuda.nccl.version()),  # type: ignore[no-untyped-call]
    }


def _output(*command: str) -> str:
    with contextlib.suppress(OSError):
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return ""
