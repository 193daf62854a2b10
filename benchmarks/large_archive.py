"""What a site takes to store a large agentic run: `python benchmarks/large_archive.py`.

Method: an archive of 87 attempts of 20 steps of 12 KB each, 1,740 kernels, with transcripts of
nearly 1 MiB that hardly pack, in all more than 32 MiB. `manage.py import_submission` stores it in
a database of its own, by the code of the API and of the form: seconds from start to end, and the
most memory that the process had at a time. The same without transcripts says what they add.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parent.parent
STEPS, SOURCE_BYTES, TRANSCRIPT_BYTES = 20, 12_000, 1_000_000


def main() -> None:
    """Print sizes, seconds and memory."""
    with tempfile.TemporaryDirectory() as folder:
        # As in production: to debug, Django keeps every query.
        own = {"PKB_STATE_DIR": folder, "DEBUG": "0", "ALLOWED_HOSTS": "localhost"}
        state = {**os.environ, **own, "SECRET_KEY": "of a benchmark " * 4}
        for words in (["migrate"], ["sync_problems"]):
            subprocess.run(_manage(*words), cwd=ROOT, env=state, check=True, capture_output=True)
        for name, has_transcripts in (("without", False), ("with", True)):
            path = Path(folder, f"{name}.tar.gz")
            unpacked = _write(path, has_transcripts=has_transcripts)
            began = time.perf_counter()
            about = ("--model", "m", "--harness", "agentic", "--owner", name)
            kib = _most_kib(_manage("import_submission", str(path), *about), state)
            print(
                f"{name} transcripts: {unpacked >> 20} MiB in {path.stat().st_size >> 20}, "
                f"{time.perf_counter() - began:.1f} s, {kib >> 10} MiB of memory"
            )


def _manage(*words: str) -> list[str]:
    return [sys.executable, "manage.py", *words]


def _most_kib(command: list[str], environment: Mapping[str, str]) -> int:
    """Run a command and return the most memory that it had."""
    process = subprocess.Popen(command, cwd=ROOT, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_maxrss


def _write(path: Path, *, has_transcripts: bool) -> int:
    """Write an archive and return how much it unpacks to."""
    random, rows = Random(0), []
    problems = json.loads((ROOT / "fixtures/problems.json").read_text())["problems"]
    with tarfile.open(path, "w:gz") as tar:

        def add(name: str, data: bytes) -> None:
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))

        add("manifest.json", json.dumps({"format": "pkb-attempts/1"}).encode())
        for problem in problems:
            folder = f"kernels/{problem['number']}_{problem['slug']}/attempt_1"
            for step in range(1, STEPS + 1):
                source = f"def solution(*args): ...\n# {random.randbytes(SOURCE_BYTES // 2).hex()}"
                add(f"{folder}/step_{step:02}_pytorch.py", source.encode())
                rows.append({"problem": problem["number"], "attempt": 1, "step": step})
            if has_transcripts:
                said = random.randbytes(TRANSCRIPT_BYTES // 2).hex().encode()
                name = f"transcripts/{problem['number']}/1.jsonl.gz"
                add(name, gzip.compress(said, mtime=0))
        add("attempts.jsonl", "\n".join(map(json.dumps, rows)).encode())
        return tar.offset


if __name__ == "__main__":
    main()
