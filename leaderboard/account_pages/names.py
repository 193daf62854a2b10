"""Says which names an account may take: such as cannot be mistaken for another's."""

from __future__ import annotations

import re

from django.core.exceptions import ValidationError

from leaderboard.kit.plain_names import is_of_the_site

LONGEST = 40
# Letters that look like others, or like nothing, are not among these.
_PLAIN = re.compile(r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?", re.ASCII | re.IGNORECASE)


def plain(name: str) -> None:
    """Raise ValidationError for a name with other characters than letters and digits of English,
    and `.`, `_`, `-` between them."""
    if len(name) > LONGEST or not _PLAIN.fullmatch(name):
        raise ValidationError(
            f"Use at most {LONGEST} letters a to z and digits, and between them . _ or -."
        )


def unreserved(name: str) -> None:
    """Raise ValidationError for a name that readers would take for the site's own."""
    if is_of_the_site(name):
        raise ValidationError("This name is kept for the site itself: choose another.")


VALIDATORS = [plain, unreserved]
