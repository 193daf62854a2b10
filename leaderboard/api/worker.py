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
from leaderboard.runs import evaluation
from leaderboard.runs.hosts import Hello, record_hello

View = Callable[..., HttpResponseBase]
Handler = Callable[Concatenate[Validated, ...], dict[str, object]]


def worker_call(shape: type[Input]) -> Callable[[Handler], View]:
    """Make a POST whose body has this shape and whose answer is what the handler returns."""

    def decorate(handler: Handler) -> View:
        def view(request: Request, /, **parts: UUID) -> Response:
            return Response(handler(validated(shape, request), **parts))

        view.__name__, view.__doc__ = handler.__name__, handler.__doc__
        guarded = permission_classes([WorkerOnly])(throttle_classes([])(view))
        described = extend_schema(request=shape, responses=dict, operation_id=handler.__name__)
        return described(api_view(["POST"])(guarded))

    return decorate


@worker_call(HelloIn)
def hello(fields: Validated) -> dict[str, object]:
    """Say that a host is alive. The site sweeps its queue each time."""
    record_hello(Hello(**fields))
    return {"heartbeat_s": settings.PKB_HEARTBEAT_S, "poll_s": settings.PKB_POLL_S}


@worker_call(ClaimIn)
def claim(fields: Validated, run_id: UUID) -> dict[str, object]:
    lease = evaluation.lease(run_id, fields["host"])
    return {
        "job": lease.encoded_job,
        "lease_token": lease.token,
        "attempt": lease.tries,
        "heartbeat_s": settings.PKB_HEARTBEAT_S,
    }


@worker_call(HeartbeatIn)
def heartbeat(fields: Validated, run_id: UUID) -> dict[str, object]:
    cancel = evaluation.heartbeat(run_id, fields["lease_token"], fields["progress"])
    return {"cancel": cancel}


@worker_call(FinishIn)
def finish(fields: Validated, run_id: UUID) -> dict[str, object]:
    evaluation.finish(run_id, fields["lease_token"], fields["report"])
    return {}


@worker_call(FailIn)
def fail(fields: Validated, run_id: UUID) -> dict[str, object]:
    """Report that the evaluation failed for a reason that is not the kernel's."""
    evaluation.fail(run_id, fields["lease_token"], fields["error"])
    return {}
