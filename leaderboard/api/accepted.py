"""Defines what is answered to who hands kernels in."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from leaderboard.api.outputs import Output, Shape
from leaderboard.models import Run
from leaderboard.models.abilities import waiting_for
from leaderboard.models.staleness import not_scored
from leaderboard.models.waiting import without_host
from leaderboard.submissions.intake import Accepted
from leaderboard.submissions.seen_before import seen_before


class AcceptedRunOut(Output):
    id = serializers.UUIDField()
    url = serializers.SerializerMethodField()
    problem = serializers.CharField(source="kernel.problem.slug")

    def get_url(self, run: Run) -> str:
        return self.address_of(run)


class SeenOut(Shape):
    kernel = serializers.CharField()
    problem = serializers.CharField()
    submission = serializers.IntegerField()


class AcceptedOut(Output):
    submission = serializers.IntegerField(source="submission.id")
    url = serializers.SerializerMethodField()
    runs = AcceptedRunOut(many=True)
    waiting = serializers.SerializerMethodField()
    no_host = serializers.SerializerMethodField()
    not_scored = serializers.SerializerMethodField()
    seen_before = serializers.SerializerMethodField()

    @extend_schema_field(SeenOut(many=True))
    def get_seen_before(self, accepted: Accepted) -> list[object]:
        """Return the sources that were handed in for their problem before."""
        found = seen_before(accepted.submission, self.context["request"].user)
        return list(SeenOut(found, many=True).data)

    def get_waiting(self, accepted: Accepted) -> dict[str, str]:
        """Return by id the runs that no known host can judge, each with why, in a sentence."""
        return {str(run): why for run, why in waiting_for(accepted.runs).items()}

    def get_no_host(self, accepted: Accepted) -> list[str]:
        """Return a sentence for each class of hardware whose runs no host judges now."""
        return sorted(without_host({run.hardware_id for run in accepted.runs}).values())

    def get_not_scored(self, accepted: Accepted) -> dict[str, str]:
        """Return by id the runs whose results will not be scored, each with why, in sentences."""
        told = {str(run.pk): not_scored(run) for run in accepted.runs}
        return {run: why for run, why in told.items() if why}

    def get_url(self, accepted: Accepted) -> str:
        return self.address_of(accepted.submission)
