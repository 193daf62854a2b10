"""Stores what was handed in: submissions, their kernels, the sources by digest."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable
from urllib.parse import quote

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import models
from django.db.models import Q

from evaluator.messages.languages import languages
from leaderboard.kit.json_types import JsonDict
from leaderboard.kit.links import url
from leaderboard.models.catalogue import LanguageModel, Problem
from leaderboard.models.choices import (
    BACKENDS,
    Harness,
    Moderation,
    Trust,
    Visibility,
    one_of,
)

MAX_COST_USD = 1e9
MAX_NOTES = 5000
MAX_LINK = 200
MAX_STEP_BUDGET = 10_000
MANIFEST_FIELDS = (
    *("model", "provider", "harness", "harness_version", "recipe", "prompt_sha256"),
    *("sampling", "budget", "prices", "prices_date"),
)
Viewer = AbstractBaseUser | AnonymousUser
# Submissions that boards show.
RANKED = Q(visibility=Visibility.PUBLIC, moderation=Moderation.ACCEPTED, is_practice=False)


class NotHeldError(Exception):
    """Says that a source can be read elsewhere only."""


class AppendOnlyError(Exception):
    """Refuses to delete what the site promised to keep."""


class SubmissionQuerySet(models.QuerySet["Submission"]):
    def ranked(self) -> SubmissionQuerySet:
        return self.filter(RANKED)

    def reachable_by(self, viewer: Viewer) -> SubmissionQuerySet:
        """Return what a viewer with the address may see."""
        if getattr(viewer, "is_staff", False):
            return self
        return self.filter(~Q(visibility=Visibility.PRIVATE) | Q(owner=viewer.pk))

    def listed_for(self, viewer: Viewer) -> SubmissionQuerySet:
        """Return what lists show to a viewer."""
        if getattr(viewer, "is_staff", False):
            return self
        return self.filter(Q(visibility=Visibility.PUBLIC) | Q(owner=viewer.pk))


class Submission(models.Model):
    """Groups all kernels of one language model and harness handed in together: one row of a board.

    `k` is how many attempts a problem were drawn. `step_budget` belongs to agentic harnesses.
    `cost_usd` is what its submitter says that making all its kernels cost, in US dollars. `link`
    leads to a page about it, such as a paper. `manifest` is what the manifest of an archive of
    attempts says of how they were made: see submissions/attempt_archives.py. Of practice runs
    nothing counts. `edited_at` is when somebody last changed what it says of itself. An idempotency
    key with the digest of its request makes a repeated request harmless.
    """

    model = models.ForeignKey(LanguageModel, models.PROTECT, related_name="submissions")
    harness = models.CharField(max_length=16, choices=Harness.choices)
    k = models.PositiveSmallIntegerField()
    step_budget = models.PositiveSmallIntegerField(null=True, blank=True)
    cost_usd = models.FloatField(null=True, blank=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="submissions")
    visibility = models.CharField(max_length=16, choices=Visibility.choices)
    is_practice = models.BooleanField(default=False)
    trust = models.CharField(max_length=16, choices=Trust.choices, default=Trust.SELF_REPORTED)
    moderation = models.CharField(
        max_length=16, choices=Moderation.choices, default=Moderation.ACCEPTED
    )
    moderation_reason = models.TextField(blank=True)
    notes = models.TextField(blank=True)
    link = models.CharField(max_length=MAX_LINK, blank=True, default="")
    manifest: models.JSONField[JsonDict, JsonDict] = models.JSONField(default=dict, blank=True)
    idempotency_key = models.CharField(max_length=200, null=True)  # noqa: DJ001  unique per owner
    request_digest = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)
    edited_at = models.DateTimeField(null=True, blank=True)

    objects = SubmissionQuerySet.as_manager()

    class Meta:
        ordering = ("-id",)
        indexes = (models.Index(fields=("visibility", "moderation")),)
        constraints = (
            one_of("harness", Harness.choices, "submission_harness_known"),
            one_of("visibility", Visibility.choices, "submission_visibility_known"),
            one_of("trust", Trust.choices, "submission_trust_known"),
            one_of("moderation", Moderation.choices, "submission_moderation_known"),
            models.CheckConstraint(condition=Q(k__gte=1, k__lte=100), name="submission_k_in_range"),
            models.CheckConstraint(
                condition=Q(cost_usd=None) | Q(cost_usd__gte=0, cost_usd__lte=MAX_COST_USD),
                name="submission_cost_in_range",
            ),
            models.CheckConstraint(
                condition=Q(link="") | Q(link__startswith="https://"),
                name="submission_link_is_https",
            ),
            models.CheckConstraint(
                condition=Q(step_budget=None) | Q(harness=Harness.AGENTIC, step_budget__gte=1),
                name="submission_steps_are_agentic",
            ),
            models.CheckConstraint(
                condition=Q(moderation=Moderation.ACCEPTED, moderation_reason="")
                | (~Q(moderation=Moderation.ACCEPTED) & ~Q(moderation_reason="")),
                name="submission_moderation_has_reason",
            ),
            models.UniqueConstraint(
                fields=("owner", "idempotency_key"), name="submission_idempotency_key_once"
            ),
        )

    def __str__(self) -> str:
        return f"{self.model} ({self.harness})"

    def get_absolute_url(self) -> str:
        return url("submission", self.pk)

    @property
    def made_with(self) -> JsonDict:
        """Return the manifest by MANIFEST_FIELDS; None for what it does not tell."""
        return {**dict.fromkeys(MANIFEST_FIELDS), **self.manifest}


class SourceQuerySet(models.QuerySet["Source"]):
    def keep(self, *texts: str) -> list[Source]:
        """Return the rows of these texts, in their order; those that are new are stored."""
        return self.keep_rows([packed_source(text) for text in texts])

    def keep_rows(self, rows: list[Source]) -> list[Source]:
        """Return these rows; those that are new are stored, and texts that were not held."""
        # In one order, so that two uploads of the same texts wait for each other instead of for
        # ever.
        self.bulk_create(sorted(rows, key=lambda row: row.digest), ignore_conflicts=True)
        self.fill(rows)
        return rows

    def fill(self, rows: Iterable[Source]) -> int:
        """Store the texts of those that are not held so far; return how many there were."""
        given = {row.digest: row for row in rows if row.is_held}
        empty = list(self.filter(pk__in=given, packed=None))
        for row in empty:
            row.packed, row.size_bytes = given[row.pk].packed, given[row.pk].size_bytes
        count = self.bulk_update(empty, ("packed", "size_bytes")) if empty else 0
        FoundLanguages.objects.find(given.values())
        return count


def packed_source(text: str) -> Source:
    """Return a row that holds a text, which is not saved."""
    data = text.encode()
    digest = hashlib.sha256(data).hexdigest()
    return Source(digest=digest, packed=zlib.compress(data, 6), size_bytes=len(data))


class Source(models.Model):
    """Stores a kernel's text, once however often it is handed in.

    A text that is not ours to show is not held: then `repository`, such as
    `github.com/owner/name`, has it at `path` of `commit`.
    """

    digest = models.CharField(max_length=64, primary_key=True)
    packed = models.BinaryField(null=True)
    size_bytes = models.PositiveIntegerField()
    repository = models.CharField(max_length=200, blank=True, default="")
    commit = models.CharField(max_length=64, blank=True, default="")
    path = models.CharField(max_length=500, blank=True, default="")

    objects = SourceQuerySet.as_manager()

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=Q(packed__isnull=False) | ~(Q(repository="") | Q(commit="") | Q(path="")),
                name="source_is_somewhere",
            ),
        )

    def __str__(self) -> str:
        return self.digest

    def get_absolute_url(self) -> str:
        return url("kernel", self.digest)

    @property
    def elsewhere(self) -> dict[str, str] | None:
        """Return where a text that is not held can be fetched, with the address of its page where
        one is known; None for others."""
        if self.is_held:
            return None
        place = {name: getattr(self, name) for name in ("repository", "commit", "path")}
        is_known = self.repository.startswith("github.com/")
        page = "/".join(map(quote, (self.repository, "blob", self.commit, self.path)))
        return {**place, "url": f"https://{page}" if is_known else ""}

    @property
    def is_held(self) -> bool:
        """Return whether the text is held here."""
        return self.packed is not None

    @property
    def text(self) -> str | None:
        """Return the text; None where it is not held here."""
        return None if self.packed is None else zlib.decompress(self.packed).decode()

    @property
    def held_text(self) -> str:
        """Return the text of a source that is to be judged; raise NotHeldError where it is not
        held."""
        if (text := self.text) is None:
            raise NotHeldError(f"the source {self.digest} is not held here")
        return text


class FoundLanguagesQuerySet(models.QuerySet["FoundLanguages"]):
    def find(self, sources: Iterable[Source]) -> None:
        """Look into the texts of those that nobody has looked into."""
        given = {source.pk: source for source in sources}
        known = set(self.filter(pk__in=given).values_list("pk", flat=True))
        self.bulk_create(
            (
                FoundLanguages(source_id=digest, names=" ".join(languages(source.held_text)))
                for digest, source in sorted(given.items())
                if digest not in known
            ),
            ignore_conflicts=True,
        )


class FoundLanguages(models.Model):
    """Names the languages found in a source, whatever it was handed in as, with blanks between
    them; there is none of a text that is not held. It is made of the text, and may be made anew."""

    source = models.OneToOneField(Source, models.CASCADE, primary_key=True, related_name="found")
    names = models.CharField(max_length=64)

    objects = FoundLanguagesQuerySet.as_manager()

    def __str__(self) -> str:
        return self.names


class KernelQuerySet(models.QuerySet["Kernel"]):
    def delete(self) -> tuple[int, dict[str, int]]:
        raise AppendOnlyError("kernels are kept: invalidate their submission instead")


class Kernel(models.Model):
    """Records one source for a problem in a submission. `step` is a revision of an attempt."""

    submission = models.ForeignKey(Submission, models.PROTECT, related_name="kernels")
    problem = models.ForeignKey(Problem, models.PROTECT, related_name="kernels")
    attempt = models.PositiveSmallIntegerField(default=1)
    step = models.PositiveSmallIntegerField(default=1)
    backend = models.CharField(max_length=16, choices=BACKENDS)
    source = models.ForeignKey(Source, models.PROTECT, related_name="kernels")

    objects = KernelQuerySet.as_manager()

    class Meta:
        ordering = ("submission_id", "problem_id", "attempt", "step")
        constraints = (
            one_of("backend", BACKENDS, "kernel_backend_known"),
            models.UniqueConstraint(
                fields=("submission", "problem", "attempt", "step"), name="kernel_once"
            ),
            models.CheckConstraint(
                condition=Q(attempt__gte=1, attempt__lte=100, step__gte=1),
                name="kernel_attempt_in_range",
            ),
        )

    def __str__(self) -> str:
        return f"{self.problem_id} attempt {self.attempt}"

    @property
    def languages(self) -> list[str]:
        """Return those found in the source; none where it is not held."""
        found = getattr(self.source, "found", None)
        return found.names.split() if found else []
