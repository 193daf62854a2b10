"""Names answers by the data version, until whose change they stay true."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from typing import Concatenate

from django.utils.cache import patch_vary_headers
from django.utils.http import parse_etags
from rest_framework.request import Request
from rest_framework.response import Response

from leaderboard.delivery.pages import PUBLIC, code_version
from leaderboard.models import DataVersion

View = Callable[Concatenate[Request, ...], Response]


def versioned(view: View) -> View:
    """Answer 304 to who has this data version; with a token the answer is its owner's only."""

    @functools.wraps(view)
    def answer(request: Request, *args: object, **kwargs: object) -> Response:
        if request.auth is not None:
            response = view(request, *args, **kwargs)
            response["Cache-Control"] = "private, no-cache"
        else:
            address = hashlib.sha256(request.get_full_path().encode()).hexdigest()[:24]
            etag = f'W/"api-{DataVersion.objects.current()}-{code_version()}-{address}"'
            if etag in parse_etags(request.headers.get("If-None-Match", "")):
                response = Response(status=304)
            else:
                response = view(request, *args, **kwargs)
            response["ETag"], response["Cache-Control"] = etag, PUBLIC
        patch_vary_headers(response, ["Authorization"])
        return response

    return answer
