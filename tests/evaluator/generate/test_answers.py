"""What is taken for a kernel of a text, and what is not."""

from __future__ import annotations

import time

import pytest

from evaluator.generate.answers import MAX_SOURCE_BYTES, fault_of, find_kernel

CODE = "import torch\n\n\ndef solution(x):\n    return x\n"


@pytest.mark.parametrize(
    "text",
    [
        f"```python\n{CODE}```",
        f"Words.\n\n```py\n{CODE}```\nMore words.",
        f"```\n{CODE}```\n",
        f"~~~python\n{CODE}~~~\n",
        f"````python\n{CODE}````\n",
        f"```python\nprint('how to run it')\n```\n```python\n{CODE}```",
        f"```python\ndef solution(x):\n    return 'a draft'\n```\nBetter:\n```python\n{CODE}```",
        f"```python\n{CODE}```\n```bash\ndef solution\n```",
        f"```python\n{CODE}```\nand then\n```python\ndef solution(x):  # cut in the midd",
        CODE,
    ],
)
def test_the_last_whole_block_that_defines_solution_is_taken(text: str) -> None:
    assert find_kernel(text) == CODE


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I cannot help with that.",
        "```python\nprint(1)\n```",
        f"```python\n{CODE}",
        f"```cpp\n{CODE}```",
        "The function solution should, def solution, do this.",
        "def solution is what you want",
        "```python\nclass A:\n    def solution(self): ...\n```",
    ],
)
def test_what_is_no_whole_kernel_is_none(text: str) -> None:
    assert find_kernel(text) is None


@pytest.mark.parametrize(
    "text", ["`" * 2_000_000, "```\n" * 500_000, "```python\n" * 200_000, "~" * 3 + " " * 2_000_000]
)
def test_hostile_text_takes_no_time(text: str) -> None:
    began = time.monotonic()
    find_kernel(text)
    assert time.monotonic() - began < 5.0


def test_a_source_that_no_site_takes_is_refused() -> None:
    assert fault_of(CODE) is None
    assert fault_of(" \n")
    assert fault_of("a\0b")
    assert fault_of("x" * (MAX_SOURCE_BYTES + 1))
