"""Prompts list a statement's sentences: what is given, what to return, which rules hold."""

from __future__ import annotations

import pytest

import problems
from problems.statement import listed

STATEMENT = (
    "Every rank calls solution(x). Let y, e.g. of [M, N], be x (both. All floats). Return y on each"
    " rank. It is new. All ranks agree on M. z is unused. M may be any positive integer."
)


@pytest.mark.parametrize("name", problems.names())
def test_no_word_of_a_statement_is_lost(name: str) -> None:
    statement = problems.load(name).problem.statement
    made = listed(statement)
    if made != statement:
        items = [line[2:] for line in made.splitlines() if line.startswith("- ")]
        assert sorted(" ".join(items).split()) == sorted(statement.split())
        assert [line for line in made.splitlines() if line.endswith(":") and line[0] != "-"] == [
            *("Given:", "Return:", "Rules:")
        ]


def test_sentences_go_where_they_belong() -> None:
    given, returned, rules = (part.splitlines()[2:] for part in _parts(listed(STATEMENT)))
    assert given == [
        "- Every rank calls solution(x).",
        "- Let y, e.g. of [M, N], be x (both. All floats).",
        "- z is unused.",
    ]
    assert returned == ["- Return y on each rank. It is new."]
    assert rules == ["- All ranks agree on M.", "- M may be any positive integer."]


def test_what_has_no_such_parts_stays_as_it_is() -> None:
    for text in ("", "Return x.", "Add a to b. Add c. Add d. Add e.", "Return " + "x. Then y" * 99):
        assert listed(text) == text


def _parts(text: str) -> list[str]:
    first, second = text.index("\n\nReturn:"), text.index("\n\nRules:")
    return [text[:first], text[first + 2 : second], text[second + 2 :]]
