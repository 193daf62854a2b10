"""Says why kernels that pass PKB's check fail on hidden inputs, with a kernel for each reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from django.http import HttpRequest

from leaderboard.delivery.cards import Card, bars_of
from leaderboard.delivery.pages import Crumb, Table
from leaderboard.figures.charts import profiles as charts
from leaderboard.figures.frame import LEAST_DRAWN, Drawn, figure, framed
from leaderboard.kit.links import kernel_at, url
from leaderboard.metrics.verdicts import meaning, sentence, words
from leaderboard.read_model import boards
from leaderboard.read_model.filters import SETTING_FILTERS, setting_filters
from leaderboard.read_model.profile_comparison import (
    Beside,
    Judged,
    ProfileOutcome,
    beside,
    settings_of_both,
)

# The profile is what the page compares.
PARAMETERS = tuple(name for name in SETTING_FILTERS if name != "profile")
MOST_OF_MESSAGE = 240


class Reason(NamedTuple):
    """Holds why some kernels fail on hidden inputs, and whose; the first is the one to look at."""

    name: str
    kernels: tuple[tuple[Beside, Judged], ...]


def reasons_of(found: Sequence[Beside]) -> list[Reason]:
    """Return the reasons of what passes PKB's check alone, the commonest first."""
    groups: dict[str, list[tuple[Beside, Judged]]] = {}
    for one in found:
        for judged in one.that_pass(upstream=True, hardened=False):
            groups.setdefault(reason_of(judged.hardened), []).append((one, judged))
    made = [Reason(name, tuple(own)) for name, own in groups.items()]
    return sorted(made, key=lambda reason: -len(reason.kernels))


def reason_of(outcome: ProfileOutcome) -> str:
    return words(outcome.cause or outcome.verdict)


def finding(reasons: Sequence[Reason]) -> str:
    """Say which reason is the commonest; empty where there is none."""
    if not reasons:
        return ""
    count, total = len(reasons[0].kernels), sum(len(one.kernels) for one in reasons)
    return f"The commonest reason is {reasons[0].name}: {count} of {total} kernels"


def reason_rows(
    reasons: Sequence[Reason], titles: Mapping[int, str], *, is_timed: bool
) -> list[dict[str, object]]:
    """Return a row for each reason with the kernel to look at."""
    made = []
    for reason in reasons:
        (whose, judged), failed = reason.kernels[0], reason.kernels[0][1].hardened
        message = sentence(failed.message, failed.verdict).partition("\n")[0]
        made.append(
            {
                "name": reason.name,
                "count": len(reason.kernels),
                "means": meaning(failed.verdict, is_timed=is_timed),
                "message": message[:MOST_OF_MESSAGE],
                "model": whose.model,
                "problem": f"{judged.problem}. {titles[judged.problem]}",
                "url": kernel_at(failed.kernel, failed.run),
            }
        )
    return made


def reason_frame(reasons: Sequence[Reason], query: str) -> dict[str, object] | None:
    """Return the frame of the figure; None where the table says all."""
    is_told = len(reasons) < LEAST_DRAWN
    return None if is_told else framed(hidden_failures, query, title=finding(reasons))


def card_of(headline: str, reasons: Sequence[Reason]) -> Card:
    """Return the picture for links: the reasons."""
    counts = [(one.name, float(len(one.kernels)), str(len(one.kernels))) for one in reasons]
    return Card(title=headline, says=finding(reasons), bars=bars_of(counts))


@figure(
    "hidden-failures",
    "Why kernels that pass PKB's check fail on hidden inputs",
    "Kernels that pass PKB's check and fail on hidden inputs, by why they fail.",
    *PARAMETERS,
    tall=True,
)
def hidden_failures(request: HttpRequest) -> Drawn:
    setting, _ = setting_filters(request, settings_of_both(boards.known_settings()))
    reasons = reasons_of(beside(setting)) if setting else []
    counts = [(reason.name, len(reason.kernels)) for reason in reasons]
    return Drawn(
        spec=charts.counted(counts, "kernels"),
        table=Table(columns=("Reason", "Kernels"), rows=counts),
        crumbs=(
            Crumb(text="Leaderboard", url=url("board")),
            Crumb(text="PKB's check and hidden inputs", url=url("profiles")),
        ),
        under=setting.in_words("profile") if setting else "",
        title=finding(reasons),
    )
