"""The logs in `diagnosis.txt`, each with what the judge knew of the run and what it must find."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from evaluator.diagnosis.diagnose import Diagnosis
from evaluator.messages.report import Phase, RankLog, Verdict

FILE = Path(__file__).with_name("diagnosis.txt")
REQUIRED = {"verdict", "cause", "stage", "given", "source"}
OPTIONAL = {"evidence", "ranks", "given evidence", "given ranks"}
_SECTION = re.compile(r"^=== (.+)\n", re.MULTILINE)
_RANKS = re.compile(r"^--- (.+)\n", re.MULTILINE)
_FRAMES = re.compile(r"^(@\w+)\n", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Case:
    """Logs of one failed run. `source` says where they come from; `known` is without them."""

    name: str
    source: str
    stage: Phase
    known: Diagnosis
    wanted: Diagnosis
    logs: tuple[RankLog, ...]


def cases() -> list[Case]:
    """Read the sections of the file. A section `=== @name` holds lines that logs repeat: a log has
    a line `@name` in their place. Any other section is a case."""
    _, *parts = _SECTION.split(FILE.read_text())
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    assert len(sections) == len(parts) // 2, "two sections have one name"
    frames = {name: text for name, text in sections.items() if name.startswith("@")}
    return [read(name, sections[name], frames) for name in sections if name not in frames]


def read(name: str, text: str, frames: dict[str, str]) -> Case:
    """Read `# key: value` lines, then `--- <ranks>` and their log each; a log says `{rank}` where
    it has the number of its rank."""
    head, *parts = _RANKS.split(text)
    fields = dict(line.removeprefix("# ").split(": ", 1) for line in head.splitlines())
    assert fields.keys() >= REQUIRED, f"{name}: the header must hold {', '.join(REQUIRED)}"
    assert fields.keys() <= REQUIRED | OPTIONAL, f"{name}: the header holds something else"
    given, _, cause = fields["given"].partition(" ")
    texts = {
        rank: _FRAMES.sub(lambda found: frames[found[1]], log).replace("{rank}", str(rank))
        for ranks, log in zip(parts[::2], parts[1::2], strict=True)
        for rank in _ranks(ranks)
    }
    return Case(
        name=name,
        source=fields["source"],
        stage=Phase(fields["stage"]),
        known=Diagnosis(
            verdict=Verdict(given),
            cause=cause,
            evidence=fields.get("given evidence"),
            ranks=_ranks(fields.get("given ranks")),
        ),
        wanted=Diagnosis(
            verdict=Verdict(fields["verdict"]),
            cause=fields["cause"],
            evidence=fields.get("evidence"),
            ranks=_ranks(fields.get("ranks")),
        ),
        logs=tuple(RankLog(rank=rank, text=texts[rank]) for rank in sorted(texts)),
    )


def _ranks(text: str | None) -> tuple[int, ...]:
    return tuple(map(int, text.split(", "))) if text else ()
