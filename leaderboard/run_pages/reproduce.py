"""Says how a reader repeats a run, and how a paper names the kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from leaderboard.delivery import cells
from leaderboard.kit.visible import visible
from leaderboard.metrics.verdicts import verdict_words
from leaderboard.models import Kernel, Run
from leaderboard.read_model.boards import SETTING_FIELDS, Setting
from leaderboard.read_model.run_lines import command_of

# TeX reads these as commands; a control word needs its braces to end.
_TEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_TEX |= {character: f"\\{character}" for character in "&%$#_{}"}


def job_of(run: Run) -> dict[str, object]:
    """Return what the judge was asked, in the words of its job."""
    return {
        "problem": run.kernel.problem.slug,
        "problem_digest": run.problem_digest,
        "kernel_digest": run.kernel.source_id,
        "backend": run.kernel.backend,
        "world_size": run.world_size,
        "size": run.size,
        "dtype": run.dtype,
        "profile": run.profile,
        "device": run.device,
        "placement": run.placement,
        "hardware": run.hardware_id,
        "judge_version": run.judge_version,
    }


def reproduction(run: Run | None, bundle_url: str, text: str | None) -> dict[str, object] | None:
    """Return the context of `_reproduce.html`; the text is None where it cannot be read here."""
    if run is None:
        return None
    expected, setting = found_in_words(run), setting_in_words(run)
    return {
        "command": command_of(run),
        "has_source": text is not None,
        "bundle_url": bundle_url,
        "expected": expected if run.verdict else "",
        "setting": setting,
    }


def found_in_words(run: Run) -> str:
    """Return `1.30× of the reference (95 % interval 1.25× to 1.37×)`, or the verdict."""
    if run.speedup is None:
        return (
            verdict_words(run.verdict, is_timed=run.is_timed) if run.verdict else "not judged yet"
        )
    low, high = cells.ratio_text(run.speedup_low), cells.ratio_text(run.speedup_high)
    return f"{cells.ratio_text(run.speedup)} of the reference (95 % interval {low} to {high})"


def setting_in_words(run: Run) -> str:
    """Return the setting as boards say it, without a judge's version while nobody judged it."""
    place: dict[str, Any] = {name: getattr(run, name) for name in SETTING_FIELDS}
    setting = Setting(**place)
    return setting.in_words(but="" if run.judge_version else "judge_version")


def citation(kernel: Kernel, run: Run | None, url: str) -> dict[str, str]:
    """Return `text` and `bibtex`; the hash says which kernel, whatever happens to the address."""
    digest, problem = kernel.source_id, kernel.problem
    model = visible(kernel.submission.model.name)
    when = run.finished_at or run.created_at if run else kernel.submission.created_at
    judged = (
        f"Judged on {when:%Y-%m-%d}: {found_in_words(run)}; {setting_in_words(run)}" if run else ""
    )
    title = f"A kernel for problem {problem.number}, {problem.title}"
    note = "; ".join(part for part in (judged, f"SHA-256 {digest}") if part)
    fields: Mapping[str, str] = {
        "title": f"{{{tex(title)}}}",
        "author": f"{{{tex(model)}}}",
        "year": f"{when:%Y}",
        "howpublished": "PKB Leaderboard",
        "note": tex(note).replace("×", r"$\times$"),
        "url": url,
    }
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items()]
    bibtex = "\n".join([f"@misc{{pkb-kernel-{digest[:12]},", *lines, "}"])
    return {"text": f"{model}. {title}. {note}. {url}", "bibtex": bibtex}


def tex(text: str) -> str:
    """Return text that a submitter wrote, harmless in a .bib file."""
    return re.sub(r"[\\~^&%$#_{}]", lambda found: _TEX[found[0]], text.replace("\n", " "))
