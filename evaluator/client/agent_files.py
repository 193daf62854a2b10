"""Writes what tells a coding agent how to work on a kernel: AGENTS.md, and the same as a skill."""

from __future__ import annotations

from pathlib import Path

from .console import plain
from .reading import write_new

_SKILL = """\
---
name: pkb-kernel
description: Write, check, judge and submit a fast multi-GPU kernel for the PKB Leaderboard.
---

"""
_TEXT = """\
# {title}

Write the fastest correct kernel in `{kernel}`. The statement is its docstring, and in full at
{site}/problems/{number}-{slug}.md. {site}/llms.txt lists all that can be read.

## Loop

1. Check, offline: `pkb check {kernel}` names what would be refused and what hosts it needs.
2. Judge: `pkb submit {kernel} --practice --wait`. Practice is on no board. Add `--harness agentic`
   and `--model` with your name. Without `PKB_TOKEN`, ask for a token.
3. Read the verdict, then `pkb logs RUN` and `pkb report RUN`. The report has times, share of the
   roofline and a profile of one call.
4. Change one thing, and compare: `pkb diff RUN RUN`.
5. Submit what is fastest: `pkb submit {kernel} --harness agentic --model MODEL`.

## Rules

- Inputs are hidden and new in each run. Do not keep results between calls, and read no clock.
- Every call must write its outputs before it ends, on every rank.
- `pkb show {slug} --prompt` prints shapes, limits and what is timed. Tune for these.
- A kernel that calls NCCL rarely beats NCCL: move data by symmetric memory or peer access.
- Several files: put them in a folder with `pkb.toml` ({site}/docs/api.md, "Several files").
"""


def write_agent_files(folder: Path, kernel: str, site: str, problem: tuple[int, str, str]) -> None:
    """Write both files beside a kernel. Raises Misused where one is there, or OSError."""
    number, slug, title = problem
    text = _TEXT.format(
        title=plain(title), kernel=kernel, site=plain(site), number=number, slug=slug
    )
    skill = folder / ".claude" / "skills" / "pkb-kernel" / "SKILL.md"
    skill.parent.mkdir(parents=True, exist_ok=True)
    write_new(folder / "AGENTS.md", text.encode())
    write_new(skill, f"{_SKILL}{text}".encode())
