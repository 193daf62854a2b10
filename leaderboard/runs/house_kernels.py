"""Keeps the site's own kernels, those of fixtures/house, as one submission that is no model's.

It grows with the files: a kernel that changed is the next step of its attempt, and results of it
are those that `import_reports` finds for its digest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from django.conf import settings
from django.db import transaction

from leaderboard.models import (
    DataVersion,
    Kernel,
    LanguageModel,
    Problem,
    Source,
    Submission,
    Visibility,
)
from leaderboard.models.choices import Harness
from leaderboard.models.model_names import HOUSE, model_slug
from leaderboard.models.sources import packed_source

FILES = Path(settings.BASE_DIR) / "fixtures" / "house"
VENDOR = "PKB Leaderboard"
LICENCE = "Apache-2.0"  # that of this project
NOTES = "Kernels of this site, that show how one would write each problem: docs/house-kernels.md."
_NAME = re.compile(r"\d+_(?P<slug>\w+)_(?P<backend>triton|cuda)\.py")


def load(owner_id: int) -> int:
    """Store what is new in fixtures/house; return how many kernels that is."""
    problems = {problem.slug: problem for problem in Problem.objects.all()}
    found = [(path, _NAME.fullmatch(path.name)) for path in sorted(FILES.glob("*.py"))]
    named = [(path, name) for path, name in found if name and name["slug"] in problems]
    sources = [packed_source(path.read_text()) for path, _ in named]
    with transaction.atomic():
        submission = _submission(owner_id)
        rows = Source.objects.keep_rows(sources)
        known = list(Kernel.objects.filter(submission=submission))
        new = []
        for (_, name), source in zip(named, rows, strict=True):
            problem = problems[name["slug"]]
            own = [kernel for kernel in known if kernel.problem_id == problem.pk]
            if source.pk not in {kernel.source_id for kernel in own}:
                new.append(
                    Kernel(
                        submission=submission,
                        problem=problem,
                        attempt=1,
                        step=1 + max((kernel.step for kernel in own), default=0),
                        backend=name["backend"],
                        source=source,
                    )
                )
        Kernel.objects.bulk_create(new)
        if new:
            DataVersion.objects.bump()
    return len(new)


def is_house(model: str) -> bool:
    """Return whether a line of reports is of these kernels."""
    return model_slug(model) == HOUSE


def by_digest(owner_id: int, digests: Iterable[str]) -> tuple[Submission, dict[str, Kernel]]:
    """Return the submission, and those of its kernels that have these digests."""
    submission = _submission(owner_id)
    own = Kernel.objects.filter(submission=submission, source__in=set(digests))
    return submission, {kernel.source_id: kernel for kernel in own}


def _submission(owner_id: int) -> Submission:
    model = LanguageModel.objects.named("House kernels", VENDOR)
    LanguageModel.objects.filter(pk=model.pk, submissions=None).update(is_baseline=True)
    found, _ = Submission.objects.get_or_create(
        owner_id=owner_id,
        idempotency_key="house kernels",
        defaults={
            "model": model,
            "harness": Harness.HUMAN,
            "k": 1,
            "visibility": Visibility.PUBLIC,
            "notes": NOTES,
        },
    )
    Submission.objects.filter(pk=found.pk, licence="").update(licence=LICENCE)
    return found
