"""Says which names an account may take: such as cannot be mistaken for another's."""

from __future__ import annotations

import re

from django.core.exceptions import ValidationError

LONGEST = 40
# Letters that look like others, or like nothing, are not among these.
_PLAIN = re.compile(r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?", re.ASCII | re.IGNORECASE)
# Digits for which a reader takes letters.
_READ_AS = str.maketrans({"0": "o", "1": "i", "3": "e", "4": "a", "5": "s", "7": "t"})
RESERVED = frozenset(
    (
        *("account", "admin", "administrator", "anonymous", "api", "everybody", "judge"),
        *("leaderboard", "mail", "maintainer", "me", "moderator", "nobody", "none", "null"),
        *("official", "operator", "owner", "pkb", "postmaster", "root", "security", "site"),
        *("staff", "superuser", "support", "system", "team", "user", "webmaster", "worker"),
    )
)


def plain(name: str) -> None:
    """Raise ValidationError for a name with other characters than letters and digits of English,
    and `.`, `_`, `-` between them."""
    if len(name) > LONGEST or not _PLAIN.fullmatch(name):
        raise ValidationError(
            f"Use at most {LONGEST} letters a to z and digits, and between them . _ or -."
        )


def unreserved(name: str) -> None:
    """Raise ValidationError for a name that readers would take for the site's own."""
    letters = re.sub(r"[._-]", "", name.lower())
    if {letters, letters.translate(_READ_AS)} & RESERVED:
        raise ValidationError("This name is kept for the site itself: choose another.")


VALIDATORS = [plain, unreserved]
