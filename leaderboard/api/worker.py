"""Answers hosts that judge, which have a token of the scope `worker`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate
from uuid import UUID

from django.conf import settings
from django.http import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import api_view, permission_classes, throttle_classes
from rest_framework.request import Request
from rest_framework.response import Response

from leaderboard.api.access import WorkerOnly
from leaderboard.api.inputs import (
    ClaimIn,
    FailIn,
    FinishIn,
    HeartbeatIn,
    HelloIn,
    Input,
    Validated,
    validated,
)
from leaderboard.kit.request_error import RequestError
from leaderboard.models import ApiToken, Judgement, Run
from leaderboard.runs import claims, evaluation, training
from leaderboard.runs.claims import Claimant, Holding
from leaderboard.runs.hosts import Hello, record_hello, ring_next

# Of everything but a report.
SHORT_BYTES = 64 << 10
View = Callable[..., HttpResponseBase]
Handler = Callable[Concatenate[Validated, ...], dict[str, object]]


def worker_call(
    shape: type[Input], most_bytes: int | None = SHORT_BYTES
) -> Callable[[Handler], View]:
    """Make a POST whose body has this shape and whose answer is what the handler returns of it and
    of the worker's token. `most_bytes` is None where only the site's own limit holds."""

    def decorate(handler: Handler) -> View:
        def view(request: Request, /, **parts: UUID) -> Response:
            if most_bytes and int(request.META.get("CONTENT_LENGTH") or 0) > most_bytes:
                reason = f"The body is longer than {most_bytes} bytes."
                raise RequestError("too_large", reason, "Send what is asked for.", status=413)
            return Response(handler(validated(shape, request), request.auth, **parts))

        view.__name__, view.__doc__ = handler.__name__, handler.__doc__
        guarded = permission_classes([WorkerOnly])(throttle_classes([])(view))
        described = extend_schema(request=shape, responses=dict, operation_id=handler.__name__)
        return described(api_view(["POST"])(guarded))

    return decorate


@worker_call(HelloIn)
def hello(fields: Validated, token: ApiToken) -> dict[str, object]:
    """Say that a host is alive. The site sweeps its queue each time."""
    known = record_hello(Hello(**fields), token)
    return {
        "heartbeat_s": settings.PKB_HEARTBEAT_S,
        "poll_s": settings.PKB_POLL_S,
        "state": known.state,
    }


@worker_call(ClaimIn)
def claim(fields: Validated, token: ApiToken, run_id: UUID) -> dict[str, object]:
    desk = training if training.is_one(run_id) else claims
    try:
        lease = desk.lease(run_id, Claimant(token=token, **fields))
    except claims.OthersFirst:
        _ring_next(run_id)
        raise
    return {
        "job": lease.encoded_job,
        "lease_token": lease.holding.lease_token,
        "attempt": lease.tries,
        "heartbeat_s": settings.PKB_HEARTBEAT_S,
    }


@worker_call(HeartbeatIn)
def heartbeat(fields: Validated, token: ApiToken, run_id: UUID) -> dict[str, object]:
    if training.is_one(run_id):
        training.check_enabled(run_id)
        return {"cancel": training.heartbeat(run_id, _holding(fields, token))}
    claims.check_enabled(run_id)
    cancel = evaluation.heartbeat(run_id, _holding(fields, token), fields["progress"])
    return {"cancel": cancel}


@worker_call(FinishIn, most_bytes=None)
def finish(fields: Validated, token: ApiToken, run_id: UUID) -> dict[str, object]:
    if training.is_one(run_id):
        training.check_enabled(run_id)
        training.finish(run_id, _holding(fields, token), fields["report"])
    else:
        claims.check_enabled(run_id)
        evaluation.finish(run_id, _holding(fields, token), fields["report"])
    _ring_next(run_id)
    return {}


@worker_call(FailIn)
def fail(fields: Validated, token: ApiToken, run_id: UUID) -> dict[str, object]:
    """Report that the evaluation failed for a reason that is not the kernel's."""
    if training.is_one(run_id):
        training.check_enabled(run_id)
        training.fail(run_id, _holding(fields, token))
        return {}
    claims.check_enabled(run_id)
    evaluation.fail(run_id, _holding(fields, token), fields["error"])
    return {}


def _ring_next(run_id: UUID) -> None:
    """Tell workers of that run's hardware what goes first now."""
    for model in (Run, Judgement):
        for queue in model.objects.filter(pk=run_id).values_list("hardware_id", flat=True):
            ring_next(queue)


def _holding(fields: Validated, token: ApiToken) -> Holding:
    return Holding(lease_token=fields["lease_token"], token_id=token.pk)
