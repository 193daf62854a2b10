"""Stores what is judged, on what, and what others claim: rows kept in step with files."""

from __future__ import annotations

import re

from django.db import OperationalError, connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, Q
from django.db.models.fields.json import KT

from leaderboard.kit.json_types import JsonDict
from leaderboard.kit.links import url
from leaderboard.models.choices import DEVICES, Harness, one_of
from leaderboard.models.model_names import HIDDEN, aliases, hidden_slug, known_as, model_slug

WITHDRAWN = "It is no longer part of the benchmark."


class ProblemQuerySet(models.QuerySet["Problem"]):
    def scored(self, world_size: int | None = None) -> ProblemQuerySet:
        """Return the scored ones, those alone whose results on so many ranks count."""
        own = self.filter(scored=True)
        return own if world_size is None else own.filter(ranked_from__lte=world_size)

    def called(self, text: str) -> Problem | None:
        """Return the problem that a number or a slug names."""
        if text.isascii() and text.isdigit() and len(text) < 6:
            return self.filter(number=int(text)).first()
        return self.filter(slug=text).first()


class Problem(models.Model):
    """Holds one row of the catalogue. `payload` is its whole entry in fixtures/problems.json; the
    database keeps apart what lists of problems show of it: `source`, and as JSON `costs` and
    `baselines`.

    `digest` is the SHA-256 of the problem's file: results of another digest do not count, nor do
    those on fewer ranks than `ranked_from`.
    """

    number = models.PositiveSmallIntegerField(primary_key=True)
    slug = models.CharField(max_length=64, unique=True)
    category = models.CharField(max_length=32, db_index=True)
    category_title = models.CharField(max_length=64)
    title = models.CharField(max_length=200)
    summary = models.TextField()
    digest = models.CharField(max_length=64)
    scored = models.BooleanField()
    unscored_reason = models.TextField(null=True, blank=True)  # noqa: DJ001  None means scored
    ranked_from = models.PositiveSmallIntegerField(default=2)
    ranked_from_reason = models.TextField(null=True, blank=True)  # noqa: DJ001  None: all count
    payload: models.JSONField[JsonDict, JsonDict] = models.JSONField()
    source = models.GeneratedField(
        expression=KT("payload__source"), output_field=models.TextField(), db_persist=True
    )
    costs = models.GeneratedField(
        expression=KT("payload__costs"), output_field=models.TextField(), db_persist=True
    )
    baselines = models.GeneratedField(
        expression=KT("payload__baselines"), output_field=models.TextField(), db_persist=True
    )

    objects = ProblemQuerySet.as_manager()

    class Meta:
        ordering = ("number",)
        constraints = (
            models.CheckConstraint(
                condition=Q(scored=True, unscored_reason=None)
                | (Q(scored=False, unscored_reason__isnull=False) & ~Q(unscored_reason="")),
                name="problem_unscored_has_reason",
            ),
        )

    def __str__(self) -> str:
        return f"{self.number}. {self.title}"

    def get_absolute_url(self) -> str:
        return url("problem", self.number, self.slug)

    @property
    def is_withdrawn(self) -> bool:
        """Return True where the judge does not have it any more."""
        return self.unscored_reason == WITHDRAWN


class LanguageModelQuerySet(models.QuerySet["LanguageModel"]):
    def visible(self) -> LanguageModelQuerySet:
        """Return the models with something public: a private submission must reveal no name."""
        public = Q(submissions__visibility="public")
        return self.filter(public | Q(published__isnull=False)).distinct()

    def named(self, name: str, vendor: str, *, hidden_for: int | None = None) -> LanguageModel:
        """Return the model of this name, or of which it is another name, made if it is new; a known
        one stays as recorded.

        One that nobody is to know of is `hidden_for` the owner of what is private: a row of their
        own, so that somebody else's of that name tells nothing of it.
        """
        defaults = {"name": known_as(name), "vendor": vendor}
        slug = self._slug_for(name, hidden_for)
        return self.get_or_create(slug=slug, defaults=defaults)[0]

    def known_by(self, name: str, *, hidden_for: int | None = None) -> LanguageModel | None:
        """Return the model that `named` returns, or None where it would make one."""
        return self.filter(slug=self._slug_for(name, hidden_for)).first()

    def _slug_for(self, name: str, hidden_for: int | None) -> str:
        slug = model_slug(known_as(name))
        if hidden_for is None or self._known(slug):
            return slug
        return hidden_slug(slug, hidden_for)

    def _known(self, slug: str) -> bool:
        named = self.filter(slug=slug)
        return named.filter(is_baseline=True).exists() or named.visible().exists()

    def called(self, slug: str) -> LanguageModel | None:
        """Return the model of this address, or of which it is another name."""
        own = self.filter(slug=slug).first()
        if own is None and slug in aliases():
            own = self.filter(slug=model_slug(known_as(slug))).first()
        return own


class LanguageModel(models.Model):
    """Names what wrote the kernels; its slug is its identity. What is private alone may have a row
    of its owner's, whose slug is no address.

    A baseline is no language model: the reference itself, or a hand-written library, to compare
    with. Boards show it without a place.
    """

    slug = models.SlugField(max_length=80, unique=True)
    name = models.CharField(max_length=80)
    vendor = models.CharField(max_length=80, blank=True)
    is_baseline = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = LanguageModelQuerySet.as_manager()

    class Meta:
        ordering = ("name",)
        constraints = (
            models.CheckConstraint(
                condition=~Q(slug="") & ~Q(name=""), name="language_model_has_name"
            ),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def address(self) -> str:
        """Return its slug, of a hidden one as it would be."""
        return model_slug(self.name) if self.slug.startswith(HIDDEN) else self.slug


class Hardware(models.Model):
    """Describes a class of hosts; its slug is also the name of its queue: `cpu`, `h200x4`."""

    slug = models.SlugField(max_length=32, primary_key=True)
    title = models.CharField(max_length=200)
    device = models.CharField(max_length=8, choices=DEVICES)
    max_world_size = models.PositiveSmallIntegerField()
    facts: models.JSONField[JsonDict, JsonDict] = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ("slug",)
        verbose_name_plural = "hardware"
        constraints = (
            one_of("device", DEVICES, "hardware_device_known"),
            models.CheckConstraint(
                condition=Q(max_world_size__gte=1, max_world_size__lte=64),
                name="hardware_world_size_in_range",
            ),
        )

    def __str__(self) -> str:
        return self.title


def category_slug(title: str) -> str:
    """Return the category that a publication calls `title`: `FSDP / ZeRO` is fsdp_zero."""
    return re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_")


class Publication(models.Model):
    """Says where published claims come from. `payload` holds what does not fit a row, as given.

    `date` is a year, a month or a day in ISO 8601, as exact as the source is.
    """

    slug = models.SlugField(max_length=64, unique=True)
    date = models.CharField(max_length=10, null=True)  # noqa: DJ001  None: not known
    citation = models.TextField()
    payload: models.JSONField[JsonDict, JsonDict] = models.JSONField()

    def __str__(self) -> str:
        return self.slug


class PublishedResult(models.Model):
    """Records a claim: of `problems` problems so many were solved. Category None is the total."""

    publication = models.ForeignKey(Publication, models.CASCADE, related_name="results")
    model = models.ForeignKey(LanguageModel, models.PROTECT, related_name="published")
    harness = models.CharField(max_length=16, choices=Harness.choices)
    category = models.CharField(max_length=32, null=True)  # noqa: DJ001  None is the total
    problems = models.PositiveSmallIntegerField()
    correct_at_1 = models.PositiveSmallIntegerField()
    correct_at_3 = models.PositiveSmallIntegerField(null=True)
    fast_at_1 = models.PositiveSmallIntegerField()
    fast_at_3 = models.PositiveSmallIntegerField(null=True)

    class Meta:
        ordering = ("model__name", "harness", "category")
        constraints = (
            one_of("harness", Harness.choices, "published_harness_known"),
            models.UniqueConstraint(
                fields=("publication", "model", "harness", "category"),
                name="published_once",
            ),
            models.UniqueConstraint(
                fields=("publication", "model", "harness"),
                condition=Q(category=None),
                name="published_total_once",
            ),
            models.CheckConstraint(
                condition=Q(correct_at_1__lte=F("problems"))
                & Q(fast_at_1__lte=F("correct_at_1"))
                & (Q(correct_at_3=None) | Q(correct_at_3__lte=F("problems"))),
                name="published_counts_fit",
            ),
        )

    def __str__(self) -> str:
        return f"{self.model_id} {self.harness} {self.category or 'total'}"


# What is made of runs (models/summaries.py) is in this format: raise it with every change of what
# their columns mean. `migrate` then makes them anew.
SUMMARY_FORMAT = 7
# Stands for that format, where a catalogue came that the rows do not know of yet.
OF_AN_OLDER_CATALOGUE = 0


class OutdatedSummaryError(Exception):
    """Reports stored summaries in another format than this code reads."""

    def __init__(self, found: int) -> None:
        super().__init__(
            f"the summary is of format {found}, this release reads {SUMMARY_FORMAT}: "
            "run `manage.py rebuild_summary`"
        )


def _data_version(connection: BaseDatabaseWrapper) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT number, summary_format FROM leaderboard_dataversion WHERE id = 1")
        number, found = cursor.fetchone() or (0, SUMMARY_FORMAT)
    if found not in (SUMMARY_FORMAT, OF_AN_OLDER_CATALOGUE):
        raise OutdatedSummaryError(found)
    return int(number)


class DataVersionQuerySet(models.QuerySet["DataVersion"]):
    def current(self, asked: int | None = None) -> int:
        """Return the version; 0 before the first. Asked by every request, so not made by the ORM,
        which takes five times as long; and in place of Django's question to an old connection
        whether it still works. `asked` is what the same request was told before."""
        connection = connections[self.db]
        connection.health_check_done = True  # type: ignore[attr-defined]
        if asked is not None:
            return asked
        try:
            return _data_version(connection)
        except OperationalError:
            if connection.in_atomic_block:
                raise
            connection.close()
            return _data_version(connection)

    def bump(self) -> None:
        """Say, in the transaction that changes it, that what the public sees has changed."""
        if not self.filter(pk=1).update(number=F("number") + 1):
            self.get_or_create(pk=1, defaults={"summary_format": SUMMARY_FORMAT})

    def outdate_summary(self) -> None:
        """Mark the summary for a rebuild, in the transaction that changes what it is made of."""
        self.bump()
        self.filter(summary_format=SUMMARY_FORMAT).update(summary_format=OF_AN_OLDER_CATALOGUE)


class DataVersion(models.Model):
    """Numbers the state of the data, in at most one row. Public pages are cached under its number,
    and are made only of a summary in the format of this release."""

    number = models.PositiveBigIntegerField(default=1)
    summary_format = models.PositiveIntegerField(default=0)

    objects = DataVersionQuerySet.as_manager()

    class Meta:
        constraints = (models.CheckConstraint(condition=Q(pk=1), name="data_version_is_one_row"),)

    def __str__(self) -> str:
        return str(self.number)
