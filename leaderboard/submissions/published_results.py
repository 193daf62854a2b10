"""Brings published claims into the database. They are shown as claims, never as results."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.db import transaction

from leaderboard.kit.json_types import JsonDict
from leaderboard.models import (
    DataVersion,
    Harness,
    LanguageModel,
    Publication,
    PublishedResult,
)
from leaderboard.models.catalogue import category_slug

PKB = Path(settings.BASE_DIR) / "fixtures" / "published" / "pkb-results.json"
SLUG = "parallelkernelbench-2026"
ISO_DATE = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?")
COUNTS = ("correct_at_1", "correct_at_3", "fast_at_1", "fast_at_3")


def load(path: Path = PKB) -> int:
    """Store the claims of the file in place of those stored before; return how many there are.
    Raises ValueError for a date that is none."""
    data = json.loads(path.read_text())
    values = {"citation": data["cite"], "date": _date(data["date"]), "payload": data}
    with transaction.atomic():
        publication, made = Publication.objects.get_or_create(slug=SLUG, defaults=values)
        if not made and publication.payload == data:
            return publication.results.count()
        Publication.objects.filter(pk=publication.pk).update(**values)
        publication.results.all().delete()
        models = {
            name: LanguageModel.objects.named(name, data["vendors"][name])
            for name in data["models"]
        }
        rows = [
            PublishedResult(publication=publication, model=models[name], **claim)
            for name, claim in _claims(data)
        ]
        PublishedResult.objects.bulk_create(rows)
        DataVersion.objects.bump()
    return len(rows)


def _claims(data: JsonDict) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the model's name and the columns of each claim."""
    places: list[tuple[str | None, JsonDict]] = [(None, data["total"])]
    places += [(category_slug(title), cells) for title, cells in data["categories"].items()]
    for category, cells in places:
        for name in data["models"]:
            counts = dict(zip(COUNTS, cells[name], strict=True))
            place = {"category": category, "problems": cells["problems"]}
            yield name, {"harness": Harness.ZERO_SHOT, **place, **counts}
    for name, claim in data["agentic"].items():
        yield (
            name,
            {
                "harness": Harness.AGENTIC,
                "category": None,
                "problems": claim["of"],
                "correct_at_1": claim["correct"],
                "fast_at_1": claim["fast_1"],
            },
        )


def _date(text: str) -> str:
    """Return a year, a month or a day, as exact as the source; raise ValueError otherwise."""
    if not ISO_DATE.fullmatch(text):
        raise ValueError(f"{text!r} is no year, month or day in ISO 8601")
    return text
