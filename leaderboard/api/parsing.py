"""Parses the bodies of requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser


class ObjectParser(JSONParser):
    """Parses JSON whose outermost value is an object; refuses nesting that exhausts the stack."""

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, object] | None = None,
    ) -> dict[str, object]:
        try:
            value = super().parse(stream, media_type, parser_context)
        except RecursionError:
            raise ParseError("The JSON is nested too deeply.") from None
        if not isinstance(value, dict):
            raise ParseError("The JSON is not an object.")
        return value
