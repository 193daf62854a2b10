"""Text from submissions is shown as it is, and can neither run nor deceive."""

from __future__ import annotations

import pytest

from evaluator.messages.report import Verdict
from leaderboard.kit.highlighting import MOST_COLOURED, highlighted
from leaderboard.kit.visible import visible
from leaderboard.metrics import verdicts
from leaderboard.run_pages.mechanisms import source_marks


def test_a_line_is_not_marked_twice_with_the_same_words() -> None:
    found = {"tag": "cuda_graph", "evidence": "source", "detail": "line 7: torch.cuda.CUDAGraph"}
    flags = {"static:cuda-graph": [7, 9], "uses_nccl": [9]}
    marks = source_marks({"flag_lines": flags, "mechanisms": [found]})
    assert marks == {7: ["cuda graph"], 9: ["cuda graph", "uses nccl"]}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\u202eb", "a[U+202E]b"),
        ("\u2066x\u2069", "[U+2066]x[U+2069]"),
        ("\x1b[31mred", "[U+001B][31mred"),
        ("zero\u200bwidth", "zero[U+200B]width"),
        ("\x00", "[U+0000]"),
        ("soft\xadhyphen", "soft[U+00AD]hyphen"),
        ("Model\u3164One", "Model[U+3164]One"),
        ("x\U000e0041\U000e007f", "x[U+E0041][U+E007F]"),
        ("e\u0301 ❤\ufe0f", "e\u0301 ❤\ufe0f"),
        ("tab\tand\nline\r\n", "tab\tand\nline\n"),
        ("مرحبا", "مرحبا"),
    ],
)
def test_hidden_and_reordering_characters_are_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_highlighting_escapes_the_source_and_numbers_its_lines() -> None:
    html = highlighted('def solution(x):\n    return "<script>alert(1)</script>" # \u202e\n')
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "[U+202E]" in html
    assert 'id="L-2"' in html
    assert 'href="#L-2"' in html


@pytest.mark.parametrize("source", ["", "\n\n", "def f(:", "x" * 10_000, "'''unclosed", "\ud7ff"])
def test_any_source_can_be_highlighted(source: str) -> None:
    assert highlighted(source).startswith('<div class="highlight">')


def test_every_verdict_has_a_meaning_and_a_state() -> None:
    assert set(verdicts.MEANINGS) == {verdict.value for verdict in Verdict}
    for verdict in Verdict:
        expected = "ok" if verdict is Verdict.OK else "bad" if verdict.counts else "open"
        assert verdicts.state(verdict.value) == expected


@pytest.mark.parametrize(
    ("verdict", "message", "shown"),
    [
        ("ok", "right; 12.5 us a call, 0.94x, not 1.0x", "Right; 12.5 µs a call, 0.94×, not 1.0×"),
        ("faster_than_light", "1.5 us a call", "1.5 µs a call"),
        ("runtime_error", "rank 1: ValueError: 3 us at 0x", "Rank 1: ValueError: 3 us at 0x"),
        (None, "", ""),
    ],
)
def test_a_reason_is_written_as_all_else_is(verdict: str, message: str, shown: str) -> None:
    assert verdicts.sentence(message, verdict) == shown


def test_a_very_long_source_is_shown_whole_without_colours() -> None:
    html = highlighted("." * MOST_COLOURED + "\n<b>\n")
    assert 'class="o"' not in html
    assert "&lt;b&gt;" in html
    assert 'id="L-2"' in html
