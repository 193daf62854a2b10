"""Names the ways in which a command fails, each with its exit status."""

from __future__ import annotations

from collections.abc import Mapping

TOO_MANY = 429
OK, WRONG_VERDICT, MISUSED, REFUSED, NO_ANSWER = range(5)


class Failure(Exception):
    """Ends a command. `status` is that of the process, `fix` says how to mend it."""

    status = MISUSED
    # Whether asking again may help.
    is_passing = False

    def __init__(
        self, message: str, fix: str = "", *, code: str = "", retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.message, self.fix = message, fix
        self.code = code or type(self).__name__.lower()
        self.retry_after_s = retry_after_s

    @property
    def fields(self) -> Mapping[str, str]:
        """Return what is wrong with single fields or files, by their names."""
        return {}


class Misused(Failure):
    """Says that the call is wrong, or a file of the caller's."""


class Refused(Failure):
    """Says that the site refuses, and why; `http_status` is from 400 to 499."""

    status = REFUSED

    def __init__(
        self,
        message: str,
        fix: str = "",
        *,
        code: str = "",
        http_status: int,
        fields: Mapping[str, str] | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message, fix, code=code, retry_after_s=retry_after_s)
        self.http_status = http_status
        self.is_passing = http_status == TOO_MANY
        self._fields = fields or {}

    @property
    def fields(self) -> Mapping[str, str]:
        return self._fields

    def with_fix(self, fix: str) -> Refused:
        """Return the same refusal, to be mended in another way."""
        return Refused(
            self.message,
            fix,
            code=self.code,
            http_status=self.http_status,
            fields=self._fields,
            retry_after_s=self.retry_after_s,
        )


class NoAnswer(Failure):
    """Says that there is no answer, or none that can be used."""

    status = NO_ANSWER

    def __init__(
        self, message: str, fix: str = "", *, is_passing: bool = True, retry_after_s: float = 0
    ) -> None:
        super().__init__(message, fix, code="no_answer", retry_after_s=retry_after_s or None)
        self.is_passing = is_passing
