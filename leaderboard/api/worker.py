"""What a host that judges may call, with a token of the scope `worker`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate
from uuid import UUID

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import api_view, permission_classes, throttle_classes
from rest_framework.request import Request
from rest_framework.response import Response

from leaderboard.api.access import WorkerOnly
from leaderboard.api.inputs import ClaimIn, FailIn, FinishIn, HeartbeatIn, HelloIn, Input
from leaderboard.runs import evaluation
from leaderboard.runs.hosts import Hello, greet

Handler = Callable[Concatenate[dict[str, Any], ...], dict[str, Any]]


def worker_call(shape: type[Input]) -> Callable[[Handler], Callable[..., Any]]:
    """A POST whose body has this shape and whose answer is the dict that the handler returns."""

    def decorate(handler: Handler) -> Callable[..., Any]:
        def view(request: Request, /, **parts: Any) -> Response:
            given = shape(data=request.data)
            given.is_valid(raise_exception=True)
            return Response(handler(given.validated_data, **parts))

        view.__name__, view.__doc__ = handler.__name__, handler.__doc__
        guarded = permission_classes([WorkerOnly])(throttle_classes([])(view))
        described = extend_schema(request=shape, responses=dict, operation_id=handler.__name__)
        return described(api_view(["POST"])(guarded))

    return decorate


@worker_call(HelloIn)
def hello(fields: dict[str, Any]) -> dict[str, Any]:
    """I am alive. The site sweeps its queue each time."""
    greet(Hello(**fields))
    return {"heartbeat_s": settings.PKB_HEARTBEAT_S, "poll_s": settings.PKB_POLL_S}


@worker_call(ClaimIn)
def claim(fields: dict[str, Any], run_id: UUID) -> dict[str, Any]:
    lease = evaluation.claim(run_id, fields["host"])
    return {
        "job": lease.encoded_job,
        "lease_token": lease.token,
        "attempt": lease.tries,
        "heartbeat_s": settings.PKB_HEARTBEAT_S,
    }


@worker_call(HeartbeatIn)
def heartbeat(fields: dict[str, Any], run_id: UUID) -> dict[str, Any]:
    cancel = evaluation.heartbeat(run_id, fields["lease_token"], fields["progress"])
    return {"cancel": cancel}


@worker_call(FinishIn)
def finish(fields: dict[str, Any], run_id: UUID) -> dict[str, Any]:
    evaluation.finish(run_id, fields["lease_token"], fields["report"])
    return {}


@worker_call(FailIn)
def fail(fields: dict[str, Any], run_id: UUID) -> dict[str, Any]:
    """The evaluation failed for a reason that is not the kernel's."""
    evaluation.fail(run_id, fields["lease_token"], fields["error"])
    return {}
