"""Stores what was handed in: submissions and their kernels."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q

from leaderboard.kit.json_types import JsonDict
from leaderboard.kit.links import url
from leaderboard.kit.permissions import READ_ALL, may
from leaderboard.kit.submission_addresses import new_key, number_and_key
from leaderboard.models.catalogue import LanguageModel, Problem
from leaderboard.models.choices import (
    BACKENDS,
    LICENCES,
    Harness,
    Moderation,
    Trust,
    Visibility,
    one_of,
)
from leaderboard.models.sources import Source
from leaderboard.models.teams import Team, Viewer, teams_of

MAX_COST_USD = 1e9
MAX_NOTES = 5000
MAX_LINK = 200
MAX_STEP_BUDGET = 10_000
MANIFEST_FIELDS = (
    *("model", "provider", "harness", "harness_version", "recipe", "prompt_sha256"),
    *("sampling", "budget", "prices", "prices_date"),
)
# Submissions that boards show.
RANKED = Q(visibility=Visibility.PUBLIC, moderation=Moderation.ACCEPTED, is_practice=False)


def theirs(viewer: Viewer, prefix: str = "") -> Q:
    """Return the condition of what a viewer or a team of theirs handed in."""
    own = Q(**{f"{prefix}owner": viewer.pk})
    teams = teams_of(viewer)
    return own | Q(**{f"{prefix}team__in": teams}) if teams else own


class AppendOnlyError(Exception):
    """Refuses to delete what the site promised to keep."""


class KeyField(models.CharField):  # type: ignore[type-arg]  # it takes no types when it runs
    """Holds a key, drawn for a row that has none."""

    def pre_save(self, model_instance: models.Model, add: bool) -> str:
        key = str(getattr(model_instance, self.attname) or new_key())
        setattr(model_instance, self.attname, key)
        return key

    def deconstruct(self) -> Any:
        """Describe the field to migrations as a column of text."""
        name, _, arguments, named = super().deconstruct()
        return name, "django.db.models.CharField", arguments, named


class SubmissionQuerySet(models.QuerySet["Submission"]):
    def ranked(self) -> SubmissionQuerySet:
        return self.filter(RANKED)

    def owned_by(self, viewer: Viewer) -> SubmissionQuerySet:
        """Return what a user handed in."""
        return self.filter(owner=viewer.pk)

    def at(self, address: str, viewer: Viewer) -> SubmissionQuerySet:
        """Return the one at an address, if a viewer may see it: others than its owner, their team
        and staff name an unlisted one by its key, too."""
        number, key = number_and_key(address)
        named = Q(pk__in=self.listed_for(viewer)) | Q(visibility=Visibility.UNLISTED, key=key)
        return self.filter(named, pk=number)

    def reachable_by(self, viewer: Viewer) -> SubmissionQuerySet:
        """Keep submissions that a viewer may see who has the address of a kernel or run of them."""
        if may(viewer, READ_ALL):
            return self
        return self.filter(~Q(visibility=Visibility.PRIVATE) | theirs(viewer))

    def with_sources_for(self, viewer: Viewer) -> SubmissionQuerySet:
        """Return those of whose kernels a viewer may read the text."""
        if may(viewer, READ_ALL):
            return self
        return self.reachable_by(viewer).filter(Q(withholds_source=False) | theirs(viewer))

    def opening_sources_for(self, viewer: Viewer) -> SubmissionQuerySet:
        """Return those that let a viewer read the same text wherever it stands: an unlisted one
        shows its own kernels alone, or anybody could open what others withhold."""
        return self.listed_for(viewer).with_sources_for(viewer)

    def listed_for(self, viewer: Viewer) -> SubmissionQuerySet:
        """Return what lists show to a viewer."""
        if may(viewer, READ_ALL):
            return self
        return self.filter(Q(visibility=Visibility.PUBLIC) | theirs(viewer))


class Submission(models.Model):
    """Groups all kernels of one language model and harness handed in together: one row of a board.

    Members of its `team` see it as its owner does, and the team's owners may do the same to it.
    `k` is how many attempts a problem were drawn. `step_budget` belongs to agentic harnesses.
    `cost_usd` is what its submitter says that making all its kernels cost, in US dollars. `link`
    leads to a page about it, such as a paper. `manifest` is what the manifest of an archive of
    attempts says of how they were made: see submissions/attempt_archives.py. Of practice runs
    nothing counts. What `withholds_source` shows the text of its kernels, and what quotes it, to
    its owner, its team and staff: read_model/withholding.py. `edited_at` is when somebody last
    changed what it says of itself. An idempotency key with the digest of its request makes a
    repeated request harmless.

    While it is unlisted, its address has its `key`, which nobody guesses.

    An embargo ends at `public_from`, or when its owner says so; `published_at` is when what had
    been hidden became public. `withdrawn_at` is when its owner withdrew it, and stays;
    an embargo on what has been judged goes on.
    """

    model = models.ForeignKey(LanguageModel, models.PROTECT, related_name="submissions")
    harness = models.CharField(max_length=16, choices=Harness.choices)
    k = models.PositiveSmallIntegerField()
    step_budget = models.PositiveSmallIntegerField(null=True, blank=True)
    cost_usd = models.FloatField(null=True, blank=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="submissions")
    team = models.ForeignKey(
        Team, models.PROTECT, null=True, blank=True, related_name="submissions"
    )
    visibility = models.CharField(max_length=16, choices=Visibility.choices)
    is_practice = models.BooleanField(default=False)
    trust = models.CharField(max_length=16, choices=Trust.choices, default=Trust.SELF_REPORTED)
    moderation = models.CharField(
        max_length=16, choices=Moderation.choices, default=Moderation.ACCEPTED
    )
    moderation_reason = models.TextField(blank=True)
    notes = models.TextField(blank=True)
    link = models.CharField(max_length=MAX_LINK, blank=True, default="")
    licence = models.CharField(max_length=16, choices=LICENCES, blank=True, default="")
    withholds_source = models.BooleanField(default=False)
    manifest: models.JSONField[JsonDict, JsonDict] = models.JSONField(default=dict, blank=True)
    key = KeyField(max_length=32, default="", editable=False)
    idempotency_key = models.CharField(max_length=200, null=True)  # noqa: DJ001  unique per owner
    request_digest = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)
    edited_at = models.DateTimeField(null=True, blank=True)
    public_from = models.DateTimeField(null=True, blank=True)
    published_at = models.DateTimeField(null=True, blank=True)
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    objects = SubmissionQuerySet.as_manager()

    class Meta:
        ordering = ("-id",)
        indexes = (
            models.Index(fields=("visibility", "moderation")),
            models.Index(
                fields=("public_from",),
                name="submission_embargo",
                condition=Q(public_from__isnull=False),
            ),
        )
        constraints = (
            one_of("licence", [("", ""), *LICENCES], "submission_licence_known"),
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
            models.CheckConstraint(
                condition=Q(public_from=None) | ~Q(visibility=Visibility.PUBLIC),
                name="submission_embargo_is_hidden",
            ),
            models.CheckConstraint(
                condition=~Q(moderation=Moderation.WITHDRAWN) | Q(withdrawn_at__isnull=False),
                name="submission_withdrawn_has_date",
            ),
            models.CheckConstraint(condition=~Q(key=""), name="submission_has_key"),
            models.CheckConstraint(
                condition=Q(licence="") | Q(withholds_source=False),
                name="submission_withheld_has_no_licence",
            ),
            models.UniqueConstraint(
                fields=("owner", "idempotency_key"), name="submission_idempotency_key_once"
            ),
        )

    def __str__(self) -> str:
        return f"{self.model} ({self.harness})"

    def get_absolute_url(self) -> str:
        return url("submission", self.address)

    @property
    def address(self) -> str:
        """Return its number, and of an unlisted one the key: `9` or `9-KEY`."""
        is_unlisted = self.visibility == Visibility.UNLISTED
        return f"{self.pk}-{self.key}" if is_unlisted else str(self.pk)

    @property
    def made_with(self) -> JsonDict:
        """Return the manifest by MANIFEST_FIELDS; None for what it does not tell."""
        return {**dict.fromkeys(MANIFEST_FIELDS), **self.manifest}


class KernelQuerySet(models.QuerySet["Kernel"]):
    def delete(self) -> tuple[int, dict[str, int]]:
        raise AppendOnlyError("kernels are kept: invalidate their submission instead")


class Kernel(models.Model):
    """Records one source for a problem in a submission. `step` is a revision of an attempt.

    `older_task` says how the task differed that it was written for, as in `which sampled neighbours
    at random`, and is empty where that is the problem's of today; what it names counts nowhere.
    """

    submission = models.ForeignKey(Submission, models.PROTECT, related_name="kernels")
    problem = models.ForeignKey(Problem, models.PROTECT, related_name="kernels")
    attempt = models.PositiveSmallIntegerField(default=1)
    step = models.PositiveSmallIntegerField(default=1)
    backend = models.CharField(max_length=16, choices=BACKENDS)
    source = models.ForeignKey(Source, models.PROTECT, related_name="kernels")
    older_task = models.CharField(max_length=200, blank=True, default="")

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
