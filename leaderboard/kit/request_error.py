"""A request that cannot be granted: what is wrong and how to mend it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Refusal(Exception):
    """The request's fault. `code` is for programs, `message` and `fix` for people."""

    def __init__(
        self,
        code: str,
        message: str,
        fix: str,
        *,
        status: int = 400,
        fields: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(f"{message} {fix}")
        self.code = code
        self.message = message
        self.fix = fix
        self.status = status
        self.fields = dict(fields or {})

    @property
    def body(self) -> dict[str, Any]:
        """The one shape of an error."""
        error: dict[str, Any] = {"code": self.code, "message": self.message, "fix": self.fix}
        if self.fields:
            error["fields"] = self.fields
        return {"error": error}
