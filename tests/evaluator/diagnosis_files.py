"""The logs in `diagnosis/`, each with what the judge knew of the run and what it must find."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from evaluator.diagnosis.diagnose import Diagnosis
from evaluator.messages.report import Phase, RankLog, Verdict

FOLDER = Path(__file__).with_name("diagnosis")
KEYS = (
    *("verdict", "cause", "evidence", "ranks", "stage"),
    *("given", "given evidence", "given ranks", "source"),
)
_RANK = re.compile(r"^--- rank (\d+)\n", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Case:
    """Logs of one failed run. `source` says where they come from; `known` is without them."""

    path: Path
    source: str
    stage: Phase
    known: Diagnosis
    wanted: Diagnosis
    logs: tuple[RankLog, ...]


def cases() -> list[Case]:
    return [read(path) for path in sorted(FOLDER.glob("*.txt"))]


def read(path: Path) -> Case:
    """A case: `# key: value` lines for all KEYS in order, then `--- rank <n>` and its log each."""
    head, *parts = _RANK.split(path.read_text())
    fields = dict(line.removeprefix("# ").split(": ", 1) for line in head.splitlines())
    assert tuple(fields) == KEYS, f"{path.name}: the header must hold {', '.join(KEYS)}"
    given, _, cause = fields["given"].partition(" ")
    return Case(
        path=path,
        source=fields["source"],
        stage=Phase(fields["stage"]),
        known=Diagnosis(
            verdict=Verdict(given),
            cause=cause,
            evidence=_optional(fields["given evidence"]),
            ranks=_ranks(fields["given ranks"]),
        ),
        wanted=Diagnosis(
            verdict=Verdict(fields["verdict"]),
            cause=fields["cause"],
            evidence=_optional(fields["evidence"]),
            ranks=_ranks(fields["ranks"]),
        ),
        logs=tuple(
            RankLog(rank=int(rank), text=text)
            for rank, text in zip(parts[::2], parts[1::2], strict=True)
        ),
    )


def _optional(text: str) -> str | None:
    return None if text == "none" else text


def _ranks(text: str) -> tuple[int, ...]:
    return () if text == "none" else tuple(int(rank) for rank in text.split(", "))
