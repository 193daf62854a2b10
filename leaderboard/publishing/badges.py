"""Draws badges: a place on the leaderboard as a small SVG for other people's pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

from leaderboard.delivery.pages import Stored, answer_public, packed
from leaderboard.models import LanguageModel, Moderation, Problem, Submission, Visibility
from leaderboard.read_model import boards, columns
from leaderboard.read_model.columns import RankedRow
from leaderboard.read_model.setting import Setting, machine_in_words

NAME = "PKB"
# Advance widths at 11 px in the widest of the fonts asked for; textLength fits the others in.
NARROW, WIDE = frozenset(" .,:;·!|'()/1filjtrI-"), frozenset("mwMW@%")
PADDING_PX, NARROW_PX, USUAL_PX, WIDE_PX = 6, 4.6, 7.0, 10.6


@dataclass(frozen=True, kw_only=True)
class BadgeBox:
    """Describes a box of the badge; lengths in px."""

    text: str
    left: float
    width: float

    @property
    def middle(self) -> float:
        return self.left + self.width / 2

    @property
    def text_width(self) -> float:
        return self.width - 2 * PADDING_PX


def boxes(says: str) -> tuple[BadgeBox, BadgeBox]:
    head = BadgeBox(text=NAME, left=0, width=width_px(NAME))
    return head, BadgeBox(text=says, left=head.width, width=width_px(says))


def width_px(text: str) -> float:
    glyphs = (NARROW_PX if c in NARROW else WIDE_PX if c in WIDE else USUAL_PX for c in text)
    return float(round(sum(glyphs) + 2 * PADDING_PX))


def of_model(slug: str) -> tuple[str, str] | None:
    """Return the model's name, and what its best submission reached; None where none is public."""
    model = LanguageModel.objects.visible().called(slug)
    if model is None:
        return None
    setting, rows = default_board()
    return model.name, said((row for row in rows if row.entry.slug == model.slug), setting)


def of_submission(number: int) -> tuple[str, str] | None:
    """Return the model's name, and what the submission reached; None where it is not public."""
    known = Submission.objects.filter(pk=number, visibility=Visibility.PUBLIC)
    found = known.select_related("model").first()
    if found is None:
        return None
    if found.moderation != Moderation.ACCEPTED:
        return found.model.name, str(found.moderation)
    if found.is_practice:
        return found.model.name, "practice"
    setting, rows = default_board()
    return found.model.name, said((row for row in rows if row.entry.submission == number), setting)


def default_board() -> tuple[Setting | None, list[RankedRow]]:
    """Return the setting of the front page, and its rows without claims, best first."""
    setting = next(iter(boards.known_settings()), None)
    if setting is None:
        return None, []
    entries = boards.judged(setting, Problem.objects.scored(setting.world_size).count())
    return setting, columns.placed(entries, columns.usual_sort(setting))


def said(rows: Iterable[RankedRow], setting: Setting | None) -> str:
    """Return the share that the front page sorts by, its setting and the place, of the first
    row."""
    row = next(iter(rows), None)
    if row is None or setting is None:
        return "not ranked yet"
    what = "faster than NCCL" if setting.is_timed else "correct"
    share = f"{100 * (row.entry.headline or 0.0):.0f} % {what} on {machine_in_words(setting)}"
    places = f"place{'s' if row.places else ''} {row.stands}"
    return f"{share} · {places}" if row.stands else share


@require_safe
def model(request: HttpRequest, slug: str) -> HttpResponse:
    return _badge(request, lambda: of_model(slug))


@require_safe
def submission(request: HttpRequest, number: int) -> HttpResponse:
    return _badge(request, lambda: of_submission(number))


def _badge(request: HttpRequest, describe: Callable[[], tuple[str, str] | None]) -> HttpResponse:
    def make(*, etag: str) -> Stored:
        found = describe()
        if found is None:
            raise Http404
        name, says = found
        head, tail = boxes(says)
        context = {
            **{"name": name, "head": head, "tail": tail, "boxes": (head, tail)},
            "width": head.width + tail.width,
        }
        return packed(render_to_string("badge.svg", context), "svg", etag)

    return answer_public(request, request.path, make)
