"""Answers what a model is given of a problem: the same text as generation gives it."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from leaderboard.api.caching import versioned
from leaderboard.api.outputs import ErrorOut, Shape
from leaderboard.api.reading import problem_called
from leaderboard.kit.request_error import RequestError
from leaderboard.read_model import environments, topologies
from leaderboard.submissions.archives import shown
from problems.environment import environment_text
from problems.prompt import FENCED, prompt
from problems.topology import problem_text

USUAL = {"backend": "cuda", "hardware": "h200x4", "size": "standard", "dtype": "bfloat16"}
RANKS = "world_size"
_FIX = "Leave it out, or choose one that there is."


class PromptOut(Shape):
    """Holds the text, and for what setting it is."""

    backend = serializers.CharField()
    hardware = serializers.CharField()
    world_size = serializers.IntegerField()
    size = serializers.CharField()
    dtype = serializers.CharField()
    prompt = serializers.CharField()


@extend_schema(
    responses={200: PromptOut, **dict.fromkeys((400, 404), ErrorOut)},
    operation_id="read_prompt",
    parameters=[
        *(OpenApiParameter(name, str, default=value) for name, value in USUAL.items()),
        OpenApiParameter(RANKS, int, description="As many ranks as fit, unless it says how many."),
    ],
)
@api_view(["GET"])
@versioned
def problem_prompt(request: Request, name: str) -> Response:
    """Return what a model is given of a problem in a setting. Recipes are those of who asks it."""
    given = problem_called(name).payload
    asked = {key: request.query_params.get(key) or usual for key, usual in USUAL.items()}
    hardware = topologies.every_class().get(asked["hardware"])
    text = hardware and problem_text(hardware, given)
    if hardware is None or text is None:
        raise _unknown(f"{given['slug']} is not judged on {shown(asked['hardware'])}")
    ranks = _ranks(request) or max(n for n in given["world_sizes"] if n <= hardware.ranks)
    chosen = {key: asked[key] for key in ("backend", "size", "dtype")}
    versions = environments.versions_of(hardware)
    text = f"{text} {environment_text(versions, asked['backend'])}"
    try:
        made = prompt(given, hardware_text=text, world_size=ranks, **chosen)
    except ValueError as error:
        raise _unknown(shown(str(error))) from None
    return Response(PromptOut({**asked, RANKS: ranks, "prompt": f"{made}{FENCED}"}).data)


def _ranks(request: Request) -> int | None:
    text = request.query_params.get(RANKS, "")
    if text and not (text.isascii() and text.isdecimal() and len(text) < 4):
        raise _unknown(f"{RANKS} is {shown(text)}, no number of ranks")
    return int(text) if text else None


def _unknown(says: str) -> RequestError:
    return RequestError("bad_query", f"{says}.", _FIX)
