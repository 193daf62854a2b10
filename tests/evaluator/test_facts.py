"""What the site tells of the judge's constants is what they are."""

from __future__ import annotations

from evaluator.judge import facts


def test_the_exported_constants_are_those_of_the_code() -> None:
    assert facts.PATH.read_text() == facts.text(), "run: python -m evaluator.judge.facts"
