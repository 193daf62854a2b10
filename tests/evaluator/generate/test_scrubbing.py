"""A key is masked wherever it stands, and nothing else is."""

from __future__ import annotations

import pytest

from evaluator.generate.scrubbing import scrubber

KEY = "sk-0123456789abcdef"


def test_a_key_is_masked_in_every_text() -> None:
    told = {"a": [f"x {KEY} y", {"b": (KEY, 5, None)}]}
    assert scrubber(KEY)(told) == {"a": ["x *** y", {"b": ["***", 5, None]}]}


@pytest.mark.parametrize("key", [None, "", "none", "EMPTY"])
def test_what_is_no_secret_changes_no_kernel(key: str | None) -> None:
    source = "x = torch.empty(1)  # EMPTY, none of sk-lengths_of_every_rank_and_more"
    assert scrubber(key)(source) == source
