"""Finds what is public for the search box, and little of it at a time."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.db.models import Q

from leaderboard.kit.links import url
from leaderboard.kit.unindexed import unindexed
from leaderboard.metrics.mechanisms import mechanism_name
from leaderboard.metrics.verdicts import words
from leaderboard.models import (
    Hardware,
    Kernel,
    LanguageModel,
    Problem,
    Run,
    Submission,
    Visibility,
)
from leaderboard.models.choices import BACKENDS, Harness
from leaderboard.models.model_names import aliases
from leaderboard.models.staleness import outdated
from leaderboard.read_model.judge_constants import judge_constants

MOST = 20
LONGEST = 80
FEWEST_DIGITS = 6
DIGEST_DIGITS, RUN_DIGITS = 64, 32
_HEX = re.compile(r"[0-9a-f]+")
_WORD = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"(?:(problem|submission) *)?#?([0-9]{1,9})")
PUBLIC = Visibility.PUBLIC


@dataclass(frozen=True, kw_only=True)
class SearchHit:
    """Holds a result. `exact`: what was asked for is its name or number, or starts its digest."""

    kind: str
    title: str
    note: str
    url: str
    exact: bool


def find(asked: str) -> list[SearchHit]:
    """Return at most MOST of each kind, exact ones first; at most four queries."""
    text = " ".join(asked.casefold().split())
    if not text or "\0" in text:
        return []
    number = _NUMBER.fullmatch(text)
    digits = hexadecimal(text)
    kind, own = (number[1], int(number[2])) if number else (None, None)
    found = [] if (digits and number) or kind == "submission" else _problems(text, own)
    found += [] if kind else _models(text)
    found += [] if own is None or kind == "problem" else _submissions(own)
    found += [] if digits or number else [*_hardware(text), *_filters(text)]
    found += [*_kernels(digits), *_runs(digits)] if digits else []
    return sorted(found, key=lambda one: not one.exact)


def hexadecimal(text: str) -> str | None:
    """Return the start of a digest or of a run's id, where it is long enough to tell something."""
    digits = text.removeprefix("sha256:").replace("-", "")
    long_enough = FEWEST_DIGITS <= len(digits) <= DIGEST_DIGITS
    return digits if long_enough and _HEX.fullmatch(digits) else None


def sole(found: Sequence[SearchHit]) -> SearchHit | None:
    """Return the only thing found, where it is exactly what was asked for."""
    return found[0] if len(found) == 1 and found[0].exact else None


def _problems(text: str, number: int | None) -> list[SearchHit]:
    """Find problems with every word in number, title, slug or category. First those in whose title
    a word begins as each that was asked for: `all` is in every normALisation."""
    found, near = [], set[str]()
    categories: dict[str, str] = {}
    sources = set[str]()
    fields = ("number", "slug", "title", "category", "category_title", "scored", "source")
    every = Problem.objects.values_list(*fields)
    for own, slug, title, category_slug, category, scored, source in every:
        categories[category_slug] = category
        sources.add(source or "")
        exact = text in (slug, title.casefold()) or number == own
        names = f"{title} {slug} {slug.replace('_', ' ')} {category}".casefold()
        if exact or (number is None and all(word in names for word in words_of(text))):
            note = category if scored else f"{category}, not scored"
            address = url("problem", own, slug)
            named = f"{own}. {title}"
            found.append(
                SearchHit(kind="Problem", title=named, note=note, url=address, exact=exact)
            )
            if begins(title.casefold(), text):
                near.add(address)
    found.sort(key=lambda one: (not one.exact, one.url not in near))
    return [*_categories(text, categories), *_sources(text, sources), *found[:MOST]]


def words_of(text: str) -> list[str]:
    """Split into words as titles do: `ring-attention` and `ring_attention` are two."""
    return re.findall(r"[^-_\s]+", text) or [text]


def begins(title: str, text: str) -> bool:
    """Return True if each word of `text` is the start of one in `title`."""
    starts = _WORD.findall(title)
    return all(any(start.startswith(word) for start in starts) for word in words_of(text))


def _categories(text: str, titles: Mapping[str, str]) -> list[SearchHit]:
    return [
        SearchHit(
            kind="Category",
            title=title,
            note="",
            url=url("category", slug),
            exact=text in (slug, title.casefold()),
        )
        for slug, title in titles.items()
        if begins(f"{title} {slug}".casefold(), text)
    ]


def _sources(text: str, names: Iterable[str]) -> list[SearchHit]:
    """Find codebases, with or without who owns them: `Megatron` is NVIDIA/Megatron-LM."""
    return [
        SearchHit(
            kind="Source codebase",
            title=name,
            note="problems from it",
            url=f"{url('problems')}?{urlencode({'source': name})}",
            exact=text in (name.casefold(), name.casefold().rpartition("/")[2]),
        )
        for name in sorted(names)
        if begins(name.casefold(), text) or f"/{text}" in f"/{name.casefold()}"
    ][:MOST]


def _filters(text: str) -> list[SearchHit]:
    """Find backends, mechanisms and harnesses, by which the board can be filtered."""
    tags = judge_constants()["mechanisms"]
    known = [("backend", name, name) for name, _ in BACKENDS]
    known += [("mechanism", tag, mechanism_name(tag)) for tag in tags]
    known += [("harness", name, name) for name in Harness.values]
    return [
        SearchHit(
            kind=filtered.capitalize(),
            title=title,
            note=f"the leaderboard with this {filtered} only",
            url=f"{url('board')}?{filtered}={value}",
            exact=text in (value, title.casefold()),
        )
        for filtered, value, title in known
        if text == value or begins(f"{title} {words(value)}".casefold(), text)
    ]


def _hardware(text: str) -> list[SearchHit]:
    rows = Hardware.objects.filter(Q(slug__icontains=text) | Q(title__icontains=text))
    return [
        SearchHit(
            kind="Hardware",
            title=slug,
            note=title,
            url=url("hardware", slug),
            exact=text in (slug, title.casefold()),
        )
        for slug, title in rows.values_list("slug", "title")[:MOST]
    ]


def _models(text: str) -> list[SearchHit]:
    named = Q(name__icontains=text) | Q(slug__icontains=text) | Q(vendor__icontains=text)
    dashed = text.replace(" ", "-")
    named |= Q(name__in=[shown for other, shown in aliases().items() if dashed in other])
    known = LanguageModel.objects.visible().filter(named)
    return [
        SearchHit(
            kind="Model",
            title=name,
            note=vendor,
            url=url("model", slug),
            exact=text in (name.casefold(), slug),
        )
        for name, vendor, slug in known.values_list("name", "vendor", "slug")[:MOST]
    ]


def _submissions(number: int) -> list[SearchHit]:
    rows = Submission.objects.filter(pk=number, visibility=PUBLIC).select_related("model")
    return [
        SearchHit(
            kind="Submission",
            title=f"Submission {row.pk}",
            note=_noted(f"{row.model.name}, {row.harness}", row.withholds_source),
            url=row.get_absolute_url(),
            exact=True,
        )
        for row in rows
    ]


def _kernels(digits: str) -> list[SearchHit]:
    """Find kernels by a range instead of a pattern: every database finds it in the index."""
    rows = Kernel.objects.filter(source__gte=digits, source__lt=f"{digits}g")
    public = rows.alias(seen_by=unindexed("submission__visibility")).filter(seen_by=PUBLIC)
    public = public.order_by("source_id", "problem_id")
    asked = ("source_id", "problem__title", "submission__withholds_source")
    titles: dict[str, dict[str, None]] = {}
    shown = set[str]()  # one submission that shows a source is enough
    for digest, title, withheld in public.values_list(*asked).distinct()[:MOST]:
        titles.setdefault(digest, {})[title] = None
        if not withheld:
            shown.add(digest)
    return [
        SearchHit(
            kind="Kernel",
            title=digest,
            note=_noted(", ".join(solved), digest not in shown),
            url=url("kernel", digest),
            exact=True,
        )
        for digest, solved in titles.items()
    ]


def _runs(digits: str) -> list[SearchHit]:
    if len(digits) > RUN_DIGITS:
        return []
    first, last = (uuid.UUID(digits.ljust(RUN_DIGITS, end)) for end in "0f")
    rows = Run.objects.filter(id__gte=first, id__lte=last)
    public = rows.alias(seen_by=unindexed("kernel__submission__visibility")).filter(seen_by=PUBLIC)
    versions = (
        *("problem_digest", "kernel__problem__digest", "judge_version", "kernel__older_task"),
        "placement",
    )
    own = ("kernel__problem__title", "kernel__submission__withholds_source")
    named = public.order_by("id").values_list("id", "status", "verdict", *own, *versions)
    return [
        SearchHit(
            kind="Run",
            title=str(run_id),
            note=_noted(f"{title}: {verdict or status}", withheld, outdated(*told)),
            url=url("run", run_id),
            exact=True,
        )
        for run_id, status, verdict, title, withheld, *told in named[:MOST]
    ]


def _noted(note: str, withheld: bool, outdated: str = "") -> str:
    return ", ".join(filter(None, (note, "source withheld" if withheld else "", outdated)))
