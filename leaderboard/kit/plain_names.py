"""Refuses names that look like others: hidden characters, letters of two scripts in a word, and the
site's own.

A rule, not a table of look-alikes: beyond ASCII a word has letters of one script. So `GPT` with a
Greek or Cyrillic letter in it is refused, and a name wholly in Greek is not.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

from leaderboard.kit.visible import visible

_WORD = re.compile(r"[^\W\d_]+")
# Next to those that Unicode calls dashes: minus, modifier and bullet.
_DASHES = "\u2212\u02d7\u2043"
_APOSTROPHES = "\u2018\u2019\u201b\u02bc\u02b9\u2032"
# Japanese and Korean are written in several.
_TOGETHER = {"HIRAGANA": "CJK", "KATAKANA": "CJK", "HANGUL": "CJK"}
# Digits for which a reader takes letters.
_READ_AS = str.maketrans({"0": "o", "1": "i", "3": "e", "4": "a", "5": "s", "7": "t"})
RESERVED = frozenset(
    (
        *("account", "admin", "administrator", "anonymous", "api", "everybody", "judge"),
        *("leaderboard", "mail", "maintainer", "me", "moderator", "nobody", "none", "null"),
        *("official", "operator", "owner", "pkb", "pkbleaderboard", "postmaster", "root"),
        *("security", "site", "staff", "superuser", "support", "system", "team", "user"),
        *("webmaster", "worker"),
    )
)


def flaw_of(name: str) -> str:
    """Say what is wrong with a name, for the sentence "it has ..."; empty where nothing is."""
    if visible(name) != name or "\n" in name or "\t" in name:
        return "characters that cannot be seen"
    for word in _WORD.findall(name):
        if len(scripts := sorted({_script(letter) for letter in word})) > 1:
            return f"letters of {' and '.join(scripts)} in one word, which look alike"
    kinds = ["Z", *(unicodedata.category(letter)[0] for letter in name)]
    if any(mark == "M" and before in "ZP" for before, mark in pairwise(kinds)):
        return "an accent without a letter"
    return ""


def normal(name: str) -> str:
    """Return a name with characters that are forms of others, such as full-width letters, as those,
    with one kind of dash and of apostrophe, and with single blanks."""
    plain = "".join(map(_plain, unicodedata.normalize("NFKC", name)))
    return re.sub(" +", " ", plain).strip()


def _plain(letter: str) -> str:
    if letter in _DASHES or unicodedata.category(letter) == "Pd":
        return "-"
    if letter in _APOSTROPHES:
        return "'"
    return " " if unicodedata.category(letter) == "Zs" else letter


def is_of_the_site(name: str) -> bool:
    """Return whether readers would take the name of an account or a team for the site's own."""
    letters = re.sub(r"[^a-z0-9]", "", name.lower())
    return bool({letters, letters.translate(_READ_AS)} & RESERVED)


def _script(letter: str) -> str:
    """Return the script as Unicode's name of the letter begins: `LATIN`, `CYRILLIC`."""
    first = unicodedata.name(letter, "UNKNOWN").partition(" ")[0]
    return _TOGETHER.get(first, first)
