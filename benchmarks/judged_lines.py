"""What benchmarks keep: a line of JSON for each judged kernel, and what they ran on."""

from __future__ import annotations

import contextlib
import json
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evaluator.messages.codec import encode
from evaluator.messages.job import Job
from evaluator.messages.report import JUDGE_VERSION, Report, Verdict
from evaluator.sandbox.sandbox import REPOSITORY

STOOD_STILL = "while standing still"  # how a verdict of `timeout` says that it is no limit's
KEPT = ("verdict", "phase", "cause", "message", "evidence", "ranks", "flags", "phase_s")
SECONDS = ("build_s", "compile_s", "rest_s")


@dataclass(frozen=True, kw_only=True)
class Turn:
    """A job under its name; `expected` are the verdicts of a header, if it has one. `path` is that
    of a file, from its folder on."""

    name: str
    job: Job
    path: str = ""
    expected: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        job = self.job
        setting = (job.world_size, job.size, job.dtype, job.profile, job.device, job.placement)
        return "/".join(map(str, (job.problem, job.kernel_digest[:16], *setting)))


def is_settled(line: dict[str, Any]) -> bool:
    """Whether a line says of its kernel what nothing beside it can have caused."""
    if "verdict" not in line or line["beside"] == 0:
        return "verdict" in line
    if line["verdict"] == Verdict.TIMEOUT:
        return STOOD_STILL in line["message"]
    return not (line["verdict"] == Verdict.HOST_UNSUPPORTED or line["cause"] == "beside")


def line_of(
    turn: Turn, found: Report | str, trial_s: list[float], wall_s: float, beside: int
) -> dict[str, Any]:
    """What the file keeps of a kernel: its report, or why there is none, and how long each trial
    took; `beside` are the judges that may have been at work, too."""
    told: dict[str, Any] = {"failed": found}
    if isinstance(found, Report):
        fields = encode(found)
        told = {name: fields[name] for name in KEPT} | _seconds(found, trial_s)
    return {
        "key": turn.key,
        "name": turn.name,
        "problem": turn.job.problem,
        "digest": turn.job.kernel_digest,
        "profile": turn.job.profile,
        "world_size": turn.job.world_size,
        "judge": JUDGE_VERSION,
        "expected": turn.expected,
        "wall_s": round(wall_s, 2),
        "beside": beside,
        **told,
    }


def _seconds(report: Report, trial_s: list[float]) -> dict[str, Any]:
    """Return where the time went; a kernel that compiles in its first call does so in its first
    trial, which takes longer by that than the others do in the median."""
    spent, build_s = sum(report.phase_s.values()), report.phase_s.get("build", 0.0)
    others = trial_s[1:]
    compile_s = max(0.0, trial_s[0] - statistics.median(others)) if others else 0.0
    told = zip(SECONDS, (build_s, compile_s, spent - build_s - compile_s), strict=True)
    trials = [round(seconds, 2) for seconds in trial_s]
    return {"trial_s": trials} | {name: round(seconds, 2) for name, seconds in told}


def summary(lines: list[dict[str, Any]]) -> str:
    """How many there are of each verdict, and what one takes."""
    counts = Counter(
        "/".join(filter(None, (line.get("verdict", "failed"), line.get("cause")))) for line in lines
    )
    told = [f"{count:4} {verdict}" for verdict, count in counts.most_common()]
    known = [line for line in lines if "build_s" in line]
    for name in (*SECONDS, "wall_s") if known else ():
        told.append(f"median {name} {statistics.median(line[name] for line in known):.1f}")
    return "\n".join(told)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of an earlier call; none where there was none."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def with_rows(head: dict[str, Any], rows: Iterable[Any]) -> str:
    """Write a JSON document of which each row is a line."""
    body = ",\n  ".join(map(json.dumps, rows))
    return f'{json.dumps(head)[:-1]},\n "rows": [\n  {body}\n ]\n}}\n'


def provenance() -> dict[str, Any]:
    """Describe the moment, code and GPUs of a measurement."""
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
