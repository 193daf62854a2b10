"""Archives of attempts for tests: one that the harness packed, and what can be wrong with one."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluator.generate.packing import archive
from tests.evaluator.generate.scripted import (
    ScriptedJudge,
    ScriptedModel,
    go_on,
    lay_out,
    plan,
    reply,
)
from tests.leaderboard.uploads import GOOD, make_tar

HOSTILE = "<script>alert(1)</script>\x1b[31mred\x1b[0m\u202e"
WRONG = "def solution(tensor):\n    return tensor  # wrong\n"
RIGHT = "def solution(tensor):\n    return tensor.clone()\n"
AGENTIC = {"model": "GPT-5.5", "harness": "agentic"}
KERNEL = "kernels/1_allreduce/attempt_1/step_01_pytorch.py"
MANIFEST = {"format": "pkb-attempts/1", "harness": "agentic", "recipe": "agentic"}
LINE: Mapping[str, Any] = {"problem": 1, "attempt": 1, "step": 1}
TRANSCRIPT = "transcripts/1/1.jsonl.gz"


def packed(folder: Path) -> bytes:
    """A wrong kernel, its verdict, and the kernel mended: as `pack` writes it."""
    words = ("--harness", "agentic", "--problems", "1", "--price", "1000,500,20000")
    answers = iter(
        [
            reply(HOSTILE, ("write", json.dumps({"source": WRONG}))),
            reply("", ("judge", json.dumps({"size": "tiny"}))),
            reply("", ("write", json.dumps({"source": RIGHT}))),
            reply("", ("done", json.dumps({"note": "Right now."}))),
        ]
    )
    own = plan(*words)
    place = lay_out(folder, own)
    judge = ScriptedJudge(verdict=lambda source: "ok" if source == RIGHT else "output_mismatch")
    go_on(place, own, ScriptedModel(script=lambda _: next(answers)), judge)
    return archive(place, own)


def files_in(data: bytes) -> dict[str, bytes]:
    """The files of a tar.gz."""
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {one.name: file.read() for one in tar if (file := tar.extractfile(one))}


def made_of(*lines: Any, manifest: Any = MANIFEST, **more: bytes) -> bytes:
    """An archive with one kernel, these lines (objects, or texts as they are) and more files."""
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    said = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
    files = {KERNEL: GOOD, "manifest.json": said, "attempts.jsonl": "\n".join(texts).encode()}
    return make_tar({**files, **more})


def zipped(*messages: Any) -> bytes:
    """A transcript."""
    texts = [one if isinstance(one, str) else json.dumps(one) for one in messages]
    return gzip.compress("\n".join(texts).encode(), mtime=0)
