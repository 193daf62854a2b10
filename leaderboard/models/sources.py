"""Stores the texts of kernels by their digest."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable
from urllib.parse import quote

from django.db import models
from django.db.models import Q

from evaluator.messages.languages import languages
from leaderboard.kit.links import url


class NotHeldError(Exception):
    """Says that a source can be read elsewhere only."""


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
