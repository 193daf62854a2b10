"""Says why a request cannot be granted and how to mend it. Used by what takes requests in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager


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


class Faults:
    """Collects the faults of one request, so that its sender can mend all of them at once."""

    def __init__(self) -> None:
        self.found: list[RequestError] = []

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """Keep the fault that is raised inside, and go on after it."""
        try:
            yield
        except RequestError as error:
            self.found.append(error)

    def raise_any(self) -> None:
        """Raise what was found, as one error."""
        if self.found:
            raise together(self.found)


def together(errors: Sequence[RequestError]) -> RequestError:
    """Return several faults as one, which has the fields of all and the code of the first."""
    first, *more = errors
    if not more:
        return first
    fields: dict[str, str] = {}
    for error in errors:
        for name, said in (error.fields or {"request": f"{error.message} {error.fix}"}).items():
            fields.setdefault(name, said)
    return RequestError(
        first.code,
        " ".join(dict.fromkeys(error.message for error in errors)),
        " ".join(dict.fromkeys(error.fix for error in errors)),
        status=max(error.status for error in errors),
        fields=fields,
    )
