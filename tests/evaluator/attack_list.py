"""Exports what hostile kernels try as JSON: the site may know nothing of the tests.

`python -m tests.evaluator.attack_list` writes the file, and a test compares it with the kernels.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from evaluator.messages.report import JUDGE_VERSION
from tests.evaluator.kernel_files import KernelFile, all_in

PATH = Path(__file__).parents[2] / "fixtures" / "attacks.json"
FOLDERS = ("misbehaving", "gated", "gpu/misbehaving")
# A kernel that makes a mistake and hides nothing says so.
MISTAKE = "none,"


def text() -> str:
    """Return the list as the file holds it. Versions that it names already stay."""
    told = json.loads(PATH.read_text()) if PATH.exists() else []
    since = {(one["device"], one["name"]): one["since"] for one in told}
    found = list(attacks(since))
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def attacks(since: Mapping[tuple[str, str], str]) -> Iterator[dict[str, object]]:
    """Yield each attack; `since` is the judge version that first had to see through it."""
    for folder in FOLDERS:
        for kernel in all_in(folder):
            if not kernel.purpose.startswith(MISTAKE):
                yield _told(kernel, since)


def _told(kernel: KernelFile, since: Mapping[tuple[str, str], str]) -> dict[str, object]:
    device, name = str(kernel.device), kernel.path.stem
    return {
        "name": name,
        "device": device,
        "tries": kernel.purpose,
        "verdicts": sorted(kernel.verdicts),
        "speedup_below": kernel.speedup_below,
        "is_timed": kernel.timed,
        "threatens_host": kernel.threatens,
        "like": kernel.like,
        "since": since.get((device, name), JUDGE_VERSION),
    }


if __name__ == "__main__":
    PATH.write_text(text())
