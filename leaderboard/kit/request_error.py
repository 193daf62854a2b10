"""Says why a request cannot be granted and how to mend it. Used by what takes requests in."""

from __future__ import annotations

from collections.abc import Mapping


class RequestError(Exception):
    """Reports a fault of the request. `code` is for programs, `message` and `fix` for people,
    `fields` says by name which part is wrong; `status` is that of HTTP."""

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
        # It may quote the request, and half of a surrogate pair cannot be sent back.
        self.message = message.encode(errors="replace").decode()
        self.fix = fix
        self.status = status
        self.fields = dict(fields or {})

    @property
    def body(self) -> dict[str, object]:
        """Return {"error": {code, message, fix, fields?}}, the one shape of an error."""
        error: dict[str, object] = {"code": self.code, "message": self.message, "fix": self.fix}
        if self.fields:
            error["fields"] = self.fields
        return {"error": error}
