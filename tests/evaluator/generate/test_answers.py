"""What is taken for a kernel of a text, and what is not."""

from __future__ import annotations

import json
import time

import pytest

from evaluator.generate.answers import calls_in
from evaluator.messages.answers import MAX_SOURCE_BYTES, fault_of, find_kernel

CODE = "import torch\n\n\ndef solution(x):\n    return x\n"
SHORT = "def solution(x):\n    return 'a draft'\n"
INDENTED = "".join(f"   {line}" if line.strip() else line for line in CODE.splitlines(True))
CALLED = json.dumps({"name": "write", "arguments": {"source": CODE}})
MARKED = f"<function=write>\n<parameter=source>\n{CODE}</parameter>\n</function>"


@pytest.mark.parametrize(
    "text",
    [
        f"```python\n{CODE}```",
        f"Words.\n\n```py\n{CODE}```\nMore words.",
        f"```\n{CODE}```\n",
        f"~~~python\n{CODE}~~~\n",
        f"````python\n{CODE}````\n",
        f"```Python3\n{CODE}```",
        f"```cuda\n{CODE}```",
        f"```triton\n{CODE}```",
        f"```cpp\n{CODE}```",
        f"```python title=kernel.py\n{CODE}```",
        f"```{{.python}}\n{CODE}```",
        f"1. The kernel:\n\n   ```python\n{INDENTED}   ```\n",
        f"```python\r\n{CODE}```",
        f"```python\n{CODE}",
        f"```python\nprint('how to run it')\n```\n```python\n{CODE}```",
        f"```python\n{CODE}```\n```python\nprint('how to run it')\n```",
        f"```python\n{SHORT}```\nBetter:\n```python\n{CODE}```",
        f"```python\n{CODE}```\nIn short:\n```python\n{SHORT}```",
        f"```python\n{CODE}```\n```bash\ndef solution\n```",
        f"```python\n{CODE}```\nand then\n```python\ndef solution(x):  # cut in the midd",
        f"```python\ndef solution(x: # broken, and longer than what parses{'#' * 80}\n```"
        f"\n```python\n{CODE}```",
        f"<think>\n```python\n{CODE}# a thought\n```\n</think>\n```python\n{CODE}```",
        f"a thought without its beginning\n</think>\n```python\n{CODE}```",
        CODE,
    ],
)
def test_the_longest_block_that_parses_and_defines_solution_is_taken(text: str) -> None:
    found = find_kernel(text)
    assert found is not None
    assert found.strip() == CODE.strip()


@pytest.mark.parametrize(
    "bound",
    [
        "solution = print\n",
        "if True:\n    def solution(x): ...\n",
        "from kernels import solution\n",
        "class solution: ...\n",
        "solution: object = print\n",
        "async def solution(x): ...\n",
    ],
)
def test_solution_may_be_bound_in_any_way_that_the_site_takes(bound: str) -> None:
    assert find_kernel(f"```python\n{bound}```") == bound


def test_a_closed_block_that_does_not_parse_is_for_the_judge_to_refuse() -> None:
    broken = "def solution(x):\n    return x +\n"
    assert find_kernel(f"```python\n{broken}```") == broken
    assert find_kernel(f"```python\n{broken}") is None  # cut off


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I cannot help with that.",
        "```python\nprint(1)\n```",
        f"<think>\n```python\n{CODE}```",
        f"<think>\n```python\n{CODE}```\n</think>\nI cannot.",
        "The function solution should, def solution, do this.",
        "def solution is what you want",
        "```python\n\0 solution\n```",
    ],
)
def test_what_is_no_kernel_is_none(text: str) -> None:
    assert find_kernel(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "`" * 2_000_000,
        "```\n" * 500_000,
        "```python\n" * 200_000,
        "~" * 3 + " " * 2_000_000,
        "<tool_call>{" * 200_000,
        "</think>" * 300_000,
        "```python\nsolution = " + "(" * 200_000 + "\n```",
    ],
)
def test_hostile_text_takes_no_time(text: str) -> None:
    began = time.monotonic()
    find_kernel(text)
    calls_in(text)
    assert time.monotonic() - began < 5.0


@pytest.mark.parametrize(
    "text",
    [
        f"<tool_call>\n{CALLED}\n</tool_call>",
        f"I write.\n<tool_call>{CALLED}</tool_call> Done.",
        f"<tool_call>{CALLED}",
        f"<think><tool_call>not this</tool_call></think><tool_call>{CALLED}</tool_call>",
        f"<tool_call>\n{MARKED}\n</tool_call>",
    ],
)
def test_calls_that_a_server_leaves_in_the_text_are_read(text: str) -> None:
    (call,) = calls_in(text)
    assert call.name == "write"
    assert json.loads(call.arguments)["source"].strip() == CODE.strip()


@pytest.mark.parametrize("body", ["", "{", "[1]", '{"name": 1}', '{"arguments": {}}', "null"])
def test_what_is_no_call_is_none(body: str) -> None:
    assert calls_in(f"<tool_call>{body}</tool_call>") == ()


def test_a_source_that_no_site_takes_is_refused() -> None:
    assert fault_of(CODE) is None
    assert fault_of(" \n")
    assert fault_of("a\0b")
    assert fault_of("x" * (MAX_SOURCE_BYTES + 1))
