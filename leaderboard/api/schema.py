"""Describes to drf-spectacular what it cannot find out by itself."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.views import SpectacularJSONAPIView


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "leaderboard.api.access.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}


def with_errors(
    result: dict[str, Any], generator: object, request: object, public: bool
) -> dict[str, Any]:
    """Say of every operation that whatever else it answers has the one shape of an error, and of
    reads that nobody has to say who they are, and 304 to who has the answer."""
    shape = {"$ref": "#/components/schemas/ErrorOut"}
    error = {"content": {"application/json": {"schema": shape}}, "description": "An error."}
    for operations in result["paths"].values():
        for method, operation in operations.items():
            operation["responses"].setdefault("default", error)
            if method == "get":
                operation["security"] = [{}, *operation["security"]]  # what is public needs none
                operation["responses"].setdefault("304", {"description": "As it was."})
    return result


schema = SpectacularJSONAPIView.as_view()
