"""Says which problems a framework asks, and how the kernels that it gets are judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from ..benchmark import Benchmark, BenchmarkProblem
from ..items import Item, extract


@cache
def benchmark() -> Benchmark:
    """Return the benchmark, read once."""
    return Benchmark()


def chosen(problems: str) -> Iterator[BenchmarkProblem]:
    """Yield the problems of `all`, or of slugs, numbers and categories with commas. Raises KeyError
    for what there is not."""
    bench = benchmark()
    for name in bench if problems == "all" else problems.split(","):
        yield from bench.categories.get(name.strip(), None) or [bench[name.strip()]]


@dataclass(frozen=True)
class KernelSetting:
    """Holds what prompts say and the judge is asked: backend, class of hardware and tier; None is
    usual for the hardware."""

    backend: str = "pytorch"
    hardware: str = "cpu"
    tier: str = "check"
    world_size: int | None = None
    size: str | None = None
    dtype: str | None = None

    def prompt(self, problem: BenchmarkProblem) -> str:
        """Return the prompt. Raises ValueError for a setting that the problem has not."""
        ranks, size, dtype = self.world_size, self.size, self.dtype
        return problem.prompt(self.backend, self.hardware, ranks, size, dtype)

    def item(self, problem: str, answer: str, group_id: str | None = None) -> Item:
        """Return the item that asks the judge for a verdict on an answer."""
        return Item(
            problem,
            extract(answer),
            backend=self.backend,
            tier=self.tier,
            group_id=group_id,
            hardware=self.hardware,
            world_size=self.world_size,
            size=self.size,
            dtype=self.dtype,
        )

    def rows(self, problems: str) -> list[dict[str, Any]]:
        """Return {problem, prompt} of each problem that can be judged in this setting."""
        return [{"problem": one.slug, "prompt": self.prompt(one)} for one in chosen(problems)]


def said(completion: Any) -> str:
    """Return the text of a completion: a text, or messages of which the last counts, each a dict or
    an object with `content`."""
    if isinstance(completion, str):
        return completion
    last = completion[-1] if isinstance(completion, (list, tuple)) and completion else completion
    content = last.get("content") if isinstance(last, dict) else getattr(last, "content", None)
    if isinstance(content, (list, tuple)):
        parts = (one.get("text") if isinstance(one, dict) else None for one in content)
        return "".join(str(part) for part in parts if part)
    return str(content or "")
