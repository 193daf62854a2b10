"""Has kernels of training judged: batches in, answers as they come, no submissions."""

from __future__ import annotations

import re
import threading
import time
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view, throttle_classes
from rest_framework.request import Request
from rest_framework.response import Response

from leaderboard.api.access import TrainingThrottle
from leaderboard.api.inputs import Input, Validated, validated
from leaderboard.api.outputs import ErrorDetailOut, ErrorOut, Shape
from leaderboard.kit.request_error import RequestError
from leaderboard.models import Judgement
from leaderboard.models.choices import BACKENDS, DEVICES, DTYPES
from leaderboard.models.training import MAX_KEY
from leaderboard.runs.hosts import ring_next
from leaderboard.submissions.training import MOST_ITEMS, PLACEMENTS, Taken, accept, cancel

REFUSALS = dict.fromkeys((400, 401, 403, 413, 429), ErrorOut)
KEY = re.compile(r"[A-Za-z0-9._:/-]+", re.ASCII)
MOST_IDS, MOST_BYTES = 512, 4 << 20
MOST_WAIT_S = 20
LOOK_AGAIN_S = 0.2
# So many requests of a process wait for answers; others hear at once what there is.
_WAITING = threading.BoundedSemaphore(3)


class Key(serializers.RegexField):
    """Takes a sender's name for a judgement or a group."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs |= {"max_length": MAX_KEY, "trim_whitespace": False}
        super().__init__(rf"\A{KEY.pattern}\Z", **kwargs)


class SourceField(serializers.CharField):
    """Takes any text: a kernel that is none is refused alone, and not with its whole batch."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(trim_whitespace=False, allow_blank=True, **kwargs)
        self.validators = []


class ItemIn(Input):
    """Takes a kernel, and how it is to be judged."""

    id = Key()
    problem = serializers.CharField(max_length=64)
    source = SourceField()  # type: ignore[assignment]
    backend = serializers.ChoiceField(choices=BACKENDS, required=False)
    tier = serializers.ChoiceField(choices=list(PLACEMENTS), default="check")
    group_id = Key(required=False)
    device = serializers.ChoiceField(choices=DEVICES, required=False)
    hardware = serializers.CharField(max_length=32, required=False)
    world_size = serializers.IntegerField(min_value=2, max_value=64, required=False)
    size = serializers.CharField(max_length=32, required=False)
    dtype = serializers.ChoiceField(choices=DTYPES, required=False)


class BatchIn(Input):
    items = serializers.ListField(child=ItemIn(), allow_empty=False, max_length=MOST_ITEMS)


class ResultsIn(Input):
    ids = serializers.ListField(child=Key(), allow_empty=False, max_length=MOST_IDS)
    wait_s = serializers.FloatField(min_value=0, max_value=MOST_WAIT_S, required=False)


class CancelIn(Input):
    ids = serializers.ListField(child=Key(), allow_empty=False, max_length=MOST_IDS)


class TakenOut(Shape):
    id = serializers.CharField()
    status = serializers.CharField()
    error = ErrorDetailOut(required=False)


class BatchOut(Shape):
    items = TakenOut(many=True)
    in_flight = serializers.IntegerField()


class OutcomeOut(Shape):
    id = serializers.CharField()
    status = serializers.CharField()
    report = serializers.DictField()


class ResultsOut(Shape):
    results = OutcomeOut(many=True)
    waiting = serializers.ListField(child=serializers.CharField())
    unknown = serializers.ListField(child=serializers.CharField())


class CancelOut(Shape):
    cancelled = serializers.IntegerField()


@extend_schema(
    request=BatchIn, responses={200: BatchOut, **REFUSALS}, operation_id="send_training_batch"
)
@api_view(["POST"])
@throttle_classes([TrainingThrottle])
def batch(request: Request) -> Response:
    """Queue judgements. An item that is sent twice is one; refused items are named one by one."""
    if int(request.META.get("CONTENT_LENGTH") or 0) > MOST_BYTES:
        reason = f"The batch is larger than {MOST_BYTES >> 20} MiB."
        raise RequestError("too_large", reason, "Send fewer kernels at a time.", status=413)
    found = accept(_owner(request), validated(BatchIn, request)["items"])
    for queue in sorted(found.queues):
        ring_next(queue)
    told = {"items": list(map(_told, found.taken)), "in_flight": settings.PKB_TRAINING_IN_FLIGHT}
    return Response(told)


@extend_schema(
    request=ResultsIn, responses={200: ResultsOut, **REFUSALS}, operation_id="read_training_results"
)
@api_view(["POST"])
@throttle_classes([TrainingThrottle])
def results(request: Request) -> Response:
    """Return those of these judgements that have ended; wait, `wait_s` at most, until one has."""
    fields, owner = validated(ResultsIn, request), _owner(request)
    until = time.monotonic() + fields.get("wait_s", 0.0)
    answer = _ended(owner, fields)
    if answer["results"] or not answer["waiting"] or not _WAITING.acquire(blocking=False):
        return Response(answer)
    try:
        while not answer["results"] and answer["waiting"] and time.monotonic() < until:
            time.sleep(LOOK_AGAIN_S)
            answer = _ended(owner, fields)
    finally:
        _WAITING.release()
    return Response(answer)


@extend_schema(
    request=CancelIn, responses={200: CancelOut, **REFUSALS}, operation_id="cancel_training"
)
@api_view(["POST"])
@throttle_classes([TrainingThrottle])
def cancelled(request: Request) -> Response:
    """Forget those of these judgements that no host has begun."""
    return Response({"cancelled": cancel(_owner(request), validated(CancelIn, request)["ids"])})


def _owner(request: Request) -> AbstractBaseUser:
    assert isinstance(request.user, AbstractBaseUser)
    return request.user


def _told(taken: Taken) -> dict[str, object]:
    refusal: RequestError | None = taken.refusal
    if refusal is None:
        return {"id": taken.key, "status": "accepted"}
    return {"id": taken.key, "status": "refused", **refusal.body}


def _ended(owner: AbstractBaseUser, fields: Validated) -> dict[str, list[Any]]:
    own = Judgement.objects.filter(owner=owner.pk, key__in=fields["ids"])
    found = {
        key: (status, said) for key, status, said in own.values_list("key", "status", "outcome")
    }
    return {
        "results": [
            {"id": key, "status": status, "report": said}
            for key, (status, said) in sorted(found.items())
            if said is not None
        ],
        "waiting": sorted(key for key, (_, said) in found.items() if said is None),
        "unknown": sorted(set(fields["ids"]) - set(found)),
    }
