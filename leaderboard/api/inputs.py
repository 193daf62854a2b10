"""Defines what the API takes. An unknown field is refused: a typing error must not pass unseen."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from django.core.exceptions import ValidationError as DjangoValidationError
from rest_framework import serializers
from rest_framework.request import Request

from leaderboard.models import Harness, Visibility
from leaderboard.models.choices import (
    BACKENDS,
    DEVICES,
    DTYPES,
    ISOLATIONS,
    LICENCES,
    PLACEMENTS,
    PROFILES,
)
from leaderboard.models.submissions import MAX_COST_USD, MAX_LINK, MAX_NOTES, MAX_STEP_BUDGET
from leaderboard.models.teams import MAX_NAME
from leaderboard.runs.reports import clean
from leaderboard.runs.withdrawing import MAX_REASON

# Fields by name, each with the Python value of its kind.
Validated = dict[str, Any]


class Input(serializers.Serializer[Any]):
    def to_internal_value(self, data: Any) -> Any:
        """Return the fields; raise ValidationError naming all that are wrong."""
        known = ", ".join(self.fields)
        unknown = sorted(set(data) - set(self.fields))
        faults: dict[str, Any] = {str(one): [f"Unknown; known are: {known}."] for one in unknown}
        faults |= self.misplaced(set(data))
        found: Any = {}
        try:
            found = super().to_internal_value(data)
        except serializers.ValidationError as error:
            faults |= dict(error.detail)  # type: ignore[arg-type]
        if faults:
            raise serializers.ValidationError(faults)
        return found

    def misplaced(self, given: set[str]) -> dict[str, list[str]]:
        """Return what is wrong with these names of fields together, by name."""
        return {}


class Amount(serializers.FloatField):
    """Takes a number of US dollars; true is none."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(min_value=0, max_value=MAX_COST_USD, required=False, **kwargs)

    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool):
            self.fail("invalid")
        found: float = super().to_internal_value(data)
        return found


def validated(shape: type[Input], request: Request) -> Validated:
    """Return the fields of a request's body; raise ValidationError naming those that are wrong."""
    given = shape(data=request.data)
    given.is_valid(raise_exception=True)
    fields: Validated = given.validated_data
    return fields


def valid_part(shape: type[Input], request: Request) -> Validated:
    """Return those fields of a request's body that can be read alone."""
    found: Validated = {}
    given: Mapping[str, Any] = request.data  # type: ignore[assignment]
    for name, field in shape().fields.items():
        if name in given:
            with suppress(serializers.ValidationError, DjangoValidationError):
                found[name] = field.run_validation(given[name])
    return found


class SubmissionIn(Input):
    """Takes one kernel (`problem`, `backend`, `source`), an `archive` of
    `<number>_<slug>_<backend>.py` files or the `upload` of one, and what is said of it. The name
    of a published tree in the archive says what is left out."""

    model = serializers.CharField(max_length=80, required=False)
    vendor = serializers.CharField(max_length=80, required=False, allow_blank=True)
    harness = serializers.ChoiceField(choices=Harness.choices)
    step_budget = serializers.IntegerField(min_value=1, max_value=MAX_STEP_BUDGET, required=False)
    cost_usd = Amount()
    visibility = serializers.ChoiceField(choices=Visibility.choices, required=False)
    public_from = serializers.DateTimeField(required=False)
    team = serializers.CharField(max_length=MAX_NAME, required=False, allow_blank=True)
    practice = serializers.BooleanField(required=False)
    link = serializers.CharField(max_length=MAX_LINK, required=False, allow_blank=True)
    licence = serializers.ChoiceField(choices=LICENCES, required=False, allow_blank=True)
    withholds_source = serializers.BooleanField(required=False)
    notes = serializers.CharField(max_length=MAX_NOTES, required=False, allow_blank=True)
    problem = serializers.CharField(max_length=64, required=False)
    backend = serializers.ChoiceField(choices=BACKENDS, required=False)
    source = serializers.CharField(  # type: ignore[assignment]
        required=False, trim_whitespace=False
    )
    archive = serializers.FileField(required=False)
    upload = serializers.UUIDField(required=False)
    attempt = serializers.IntegerField(min_value=1, max_value=100, required=False)
    step = serializers.IntegerField(min_value=1, max_value=MAX_STEP_BUDGET, required=False)
    device = serializers.ChoiceField(choices=DEVICES, required=False)
    hardware = serializers.CharField(max_length=32, required=False)
    world_size = serializers.IntegerField(min_value=2, max_value=64, required=False)
    size = serializers.CharField(max_length=32, required=False)
    dtype = serializers.ChoiceField(choices=DTYPES, required=False)
    profile = serializers.ChoiceField(choices=PROFILES, required=False)
    placement = serializers.ChoiceField(choices=PLACEMENTS, required=False)

    def misplaced(self, given: set[str]) -> dict[str, list[str]]:
        single = {"problem", "backend", "source"}
        if given & {"archive", "upload"}:
            says = "Leave it out: the archive's file names say it."
            both = {"upload": ["Send the archive or its upload."]}
            found = {name: [says] for name in single & given}
            return found | both if given >= {"archive", "upload"} else found
        return {
            name: ["Needed, unless an archive is sent."] for name in (single | {"model"}) - given
        }


class EditIn(Input):
    """Takes new values; what is left out stays as it is."""

    visibility = serializers.ChoiceField(choices=Visibility.choices, required=False)
    public_from = serializers.DateTimeField(required=False, allow_null=True)
    step_budget = serializers.IntegerField(
        min_value=1, max_value=MAX_STEP_BUDGET, required=False, allow_null=True
    )
    cost_usd = Amount(allow_null=True)
    link = serializers.CharField(max_length=MAX_LINK, required=False, allow_blank=True)
    licence = serializers.ChoiceField(choices=LICENCES, required=False, allow_blank=True)
    withholds_source = serializers.BooleanField(required=False)
    notes = serializers.CharField(max_length=MAX_NOTES, required=False, allow_blank=True)


class WithdrawIn(Input):
    reason = serializers.CharField(max_length=MAX_REASON, required=False, allow_blank=True)


class HelloIn(Input):
    host = serializers.CharField(max_length=200)
    hardware = serializers.CharField(max_length=200)
    queue = serializers.CharField(max_length=32)
    isolation = serializers.ChoiceField(choices=ISOLATIONS)
    versions = serializers.DictField(child=serializers.CharField(max_length=200))
    judge_version = serializers.CharField(max_length=32)
    abilities = serializers.ListField(
        child=serializers.CharField(max_length=32), max_length=64, required=False, allow_null=True
    )

    def validate_versions(self, value: dict[str, str]) -> dict[str, str]:
        if clean(value) != value:
            raise serializers.ValidationError(["A name has characters that no database takes."])
        return value


class ClaimIn(Input):
    host = serializers.CharField(max_length=200)
    isolation = serializers.ChoiceField(choices=ISOLATIONS)
    judge_version = serializers.CharField(max_length=32)


class HeartbeatIn(Input):
    lease_token = serializers.CharField(max_length=64)
    progress = serializers.DictField()


class FinishIn(Input):
    lease_token = serializers.CharField(max_length=64)
    report = serializers.DictField()


class FailIn(Input):
    lease_token = serializers.CharField(max_length=64)
    error = serializers.CharField(allow_blank=True)
