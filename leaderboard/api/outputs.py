"""Defines what the API answers. The schema is made of the same serializers."""

from __future__ import annotations

from typing import Any, Protocol

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request

from leaderboard.models import Run, Status, Submission
from leaderboard.models.abilities import waiting_for
from leaderboard.models.rulings import told
from leaderboard.models.runs import TIMES
from leaderboard.models.staleness import not_scored, why_stale
from leaderboard.models.waiting import ahead_of, no_host, tried, waited_s
from leaderboard.read_model.withholding import declines_told

Shape = serializers.Serializer[Any]


class Addressed(Protocol):
    def get_absolute_url(self) -> str: ...


class Output(Shape):
    """Writes a row, and can say where its page is."""

    def address_of(self, row: Addressed) -> str:
        request: Request = self.context["request"]
        return request.build_absolute_uri(row.get_absolute_url())


class ProblemOut(Output):
    number = serializers.IntegerField()
    slug = serializers.CharField()
    title = serializers.CharField()
    category = serializers.CharField()
    category_title = serializers.CharField()
    summary = serializers.CharField()
    scored = serializers.BooleanField()
    digest = serializers.CharField()


class CategoryOut(Output):
    slug = serializers.CharField()
    title = serializers.CharField()
    problems = serializers.IntegerField()
    scored = serializers.IntegerField()


class LanguageModelOut(Output):
    slug = serializers.CharField(source="address")
    name = serializers.CharField()
    vendor = serializers.CharField()
    is_baseline = serializers.BooleanField()


class SubmissionOut(Output):
    id = serializers.IntegerField()
    model = LanguageModelOut()
    harness = serializers.CharField()
    k = serializers.IntegerField()
    step_budget = serializers.IntegerField(allow_null=True)
    cost_usd = serializers.FloatField(allow_null=True)
    team = serializers.SerializerMethodField()
    visibility = serializers.CharField()
    practice = serializers.BooleanField(source="is_practice")
    trust = serializers.CharField()
    moderation = serializers.CharField()
    moderation_reason = serializers.CharField()
    link = serializers.CharField()
    licence = serializers.CharField()
    withholds_source = serializers.BooleanField()
    notes = serializers.CharField()
    manifest = serializers.DictField()
    created_at = serializers.DateTimeField()
    edited_at = serializers.DateTimeField(allow_null=True)
    public_from = serializers.DateTimeField(allow_null=True)
    published_at = serializers.DateTimeField(allow_null=True)
    withdrawn_at = serializers.DateTimeField(allow_null=True)
    kernel_count = serializers.IntegerField()
    url = serializers.SerializerMethodField()

    def get_url(self, row: Submission) -> str:
        return self.address_of(row)

    def get_team(self, row: Submission) -> str | None:
        """Return the last part of the address of its team's page, if it has a team."""
        return row.team.slug if row.team else None


class RunLineOut(Output):
    """Describes a run as a line of a list."""

    id = serializers.UUIDField()
    problem = serializers.CharField(source="kernel.problem.slug")
    problem_number = serializers.IntegerField(source="kernel.problem_id")
    submission = serializers.IntegerField(source="kernel.submission_id")
    model = serializers.CharField(source="kernel.submission.model.name")
    harness = serializers.CharField(source="kernel.submission.harness")
    practice = serializers.BooleanField(source="kernel.submission.is_practice")
    kernel = serializers.CharField(source="kernel.source_id")
    backend = serializers.CharField(source="kernel.backend")
    attempt = serializers.IntegerField(source="kernel.attempt")
    hardware = serializers.CharField(source="hardware_id")
    world_size = serializers.IntegerField()
    size = serializers.CharField()
    dtype = serializers.CharField()
    profile = serializers.CharField()
    device = serializers.CharField()
    placement = serializers.CharField()
    status = serializers.CharField()
    phase = serializers.CharField(allow_null=True)
    verdict = serializers.CharField(allow_null=True)
    message = serializers.CharField()
    speedup = serializers.FloatField(allow_null=True)
    stale = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    url = serializers.SerializerMethodField()

    def get_url(self, run: Run) -> str:
        return self.address_of(run)

    def get_stale(self, run: Run) -> str | None:
        """Return why a result is of an older version of its problem, task or judge, or null."""
        return why_stale(run) or None


# What is read of runs for it.
RUN_LINE_READS = [
    "__".join(field.source_attrs) for field in RunLineOut().fields.values() if field.source_attrs
]
RUN_LINE_READS += [
    "problem_digest",
    "kernel__problem__digest",
    "kernel__older_task",
    "judge_version",
]
# And to know what of them is told to whom.
RUN_LINE_READS += ["cause", "kernel__submission__withholds_source"]


class ProgressOut(Shape):
    done = serializers.IntegerField(source="progress_done")
    total = serializers.IntegerField(source="progress_total")


class DeclineOut(Shape):
    """Names a host that cannot judge the run, and why."""

    host = serializers.CharField()
    reason = serializers.CharField()
    declined_at = serializers.DateTimeField()


class RulingOut(Shape):
    """Tells what staff ruled on a run or its source, which then counts nowhere."""

    moderation = serializers.CharField()
    reason = serializers.CharField()


class TimingOut(Shape):
    """Gives microseconds a call, and how many times as fast with a 95 % interval."""

    kernel_us = serializers.FloatField()
    baseline_us = serializers.FloatField()
    speedup = serializers.FloatField()
    speedup_low = serializers.FloatField()
    speedup_high = serializers.FloatField()


class RunOut(RunLineOut):
    """Describes a run with all that is known of it but the report."""

    progress = ProgressOut(source="*")
    queue_position = serializers.SerializerMethodField()
    waiting_s = serializers.SerializerMethodField()
    tried = serializers.SerializerMethodField()
    not_scored = serializers.SerializerMethodField()
    declines = serializers.SerializerMethodField()
    waits_for = serializers.SerializerMethodField()
    no_host = serializers.SerializerMethodField()
    host = serializers.CharField()
    tries = serializers.IntegerField()
    cancel_requested = serializers.BooleanField()
    cause = serializers.CharField(allow_null=True)
    evidence = serializers.CharField(allow_null=True)
    ranks = serializers.ListField(child=serializers.IntegerField())
    flags = serializers.ListField(child=serializers.CharField())
    timing = serializers.SerializerMethodField()
    bound_us = serializers.FloatField(allow_null=True)
    limiter = serializers.CharField(allow_null=True)
    utilisation = serializers.FloatField(allow_null=True)
    mechanisms = serializers.ListField(child=serializers.CharField())
    isolation = serializers.CharField(allow_null=True)
    judge_version = serializers.CharField(allow_null=True)
    problem_digest = serializers.CharField()
    environment = serializers.JSONField(allow_null=True)
    ruling = serializers.SerializerMethodField()

    def get_queue_position(self, run: Run) -> int | None:
        """Return its place in the queue; 1 is next."""
        return ahead_of(run) + 1 if run.status == Status.QUEUED else None

    def get_waiting_s(self, run: Run) -> int:
        """Return the seconds since it was asked for, until now or until its last try began."""
        return waited_s(run)

    def get_tried(self, run: Run) -> str | None:
        """Say why a run waits again after a try, and when the next may begin; else null."""
        return tried(run)

    def get_not_scored(self, run: Run) -> str | None:
        """Say why its result is not scored, known before it is judged; else null."""
        return not_scored(run) or None

    @extend_schema_field(DeclineOut(many=True))
    def get_declines(self, run: Run) -> list[object]:
        """Return the declines of a run, newest first."""
        told_of = declines_told(self.context["request"].user, run)
        return list(DeclineOut(told_of, many=True).data)

    def get_waits_for(self, run: Run) -> str | None:
        """Return in a sentence what no known host has that it needs; null where some host can."""
        return waiting_for([run]).get(run.pk)

    def get_no_host(self, run: Run) -> str | None:
        """Return in a sentence that no host of its hardware judges now, while it waits for one."""
        return no_host(run)

    @extend_schema_field(RulingOut(allow_null=True))
    def get_ruling(self, run: Run) -> dict[str, str] | None:
        """Return that on the run, else that on its source."""
        return told(run.ruled())

    @extend_schema_field(TimingOut(allow_null=True))
    def get_timing(self, run: Run) -> dict[str, float] | None:
        if run.speedup is None:
            return None
        return {name: getattr(run, name) for name in TIMES}


class QueueOut(Shape):
    hardware = serializers.CharField()
    title = serializers.CharField()
    device = serializers.CharField()
    max_world_size = serializers.IntegerField()
    queued = serializers.IntegerField()
    running = serializers.IntegerField()
    hosts_alive = serializers.IntegerField()
    oldest_waiting_s = serializers.IntegerField(allow_null=True)


class StatusOut(Shape):
    software_version = serializers.CharField()
    data_version = serializers.IntegerField()
    queues = QueueOut(many=True)


class BoardOut(Shape):
    setting = serializers.DictField(allow_null=True)
    rows = serializers.ListField(child=serializers.DictField())


class ErrorDetailOut(Shape):
    code = serializers.CharField()
    message = serializers.CharField()
    fix = serializers.CharField()


class ErrorOut(Shape):
    """Describes an error; `fields` names what in the request has to be mended, if known."""

    error = ErrorDetailOut()


# A serializer has an attribute of this name, so the field cannot stand in the class's body.
ErrorDetailOut._declared_fields["fields"] = serializers.DictField(
    child=serializers.CharField(), required=False
)
