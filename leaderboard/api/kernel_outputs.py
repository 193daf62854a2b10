"""Defines what the API answers of a kernel. The schema is made of the same serializers."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from leaderboard.api.outputs import Output, Shape
from leaderboard.models import Kernel, Source


class KernelUseOut(Shape):
    """Says where a source was handed in."""

    submission = serializers.IntegerField(source="submission_id")
    model = serializers.CharField(source="submission.model.name")
    problem = serializers.CharField(source="problem.slug")
    attempt = serializers.IntegerField()
    step = serializers.IntegerField()
    backend = serializers.CharField()
    languages = serializers.SerializerMethodField()

    def get_languages(self, use: Kernel) -> list[str]:
        """Return those found in the source; none where it is not held."""
        return use.languages


class KernelOut(Output):
    """Describes a source. Its text is null where it is not held, and where it is `withheld` by its
    submitter from who asks."""

    digest = serializers.CharField()
    size_bytes = serializers.IntegerField()
    source = serializers.SerializerMethodField()  # type: ignore[assignment]
    withheld = serializers.SerializerMethodField()
    repository = serializers.CharField(allow_blank=True)
    commit = serializers.CharField(allow_blank=True)
    path = serializers.CharField(allow_blank=True)
    uses = serializers.SerializerMethodField()
    url = serializers.SerializerMethodField()

    def get_url(self, row: Source) -> str:
        return self.address_of(row)

    def get_source(self, row: Source) -> str | None:
        return None if self.get_withheld(row) else row.text

    def get_withheld(self, row: Source) -> bool:
        return row.pk in self.context["closed"]

    @extend_schema_field(KernelUseOut(many=True))
    def get_uses(self, row: Source) -> list[object]:
        return list(KernelUseOut(self.context["uses"], many=True).data)
