"""Request bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser


class ObjectParser(JSONParser):
    """JSON whose outermost value is an object; nesting that exhausts the stack is refused."""

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        try:
            value = super().parse(stream, media_type, parser_context)
        except RecursionError:
            raise ParseError("The JSON is nested too deeply.") from None
        if not isinstance(value, dict):
            raise ParseError("The JSON is not an object.")
        return value
