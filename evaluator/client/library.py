"""Names what `import pkb` offers."""

from __future__ import annotations

from . import rewards
from .benchmark import Benchmark, BenchmarkProblem, Cost
from .best import best
from .failures import Failure, Misused, NoAnswer, Refused
from .items import Item, Result, extract
from .judge import Judge
from .local_judge import LocalJudge
from .results import Results, results

__all__ = [
    "Benchmark",
    "BenchmarkProblem",
    "Cost",
    "Failure",
    "Item",
    "Judge",
    "LocalJudge",
    "Misused",
    "NoAnswer",
    "Refused",
    "Result",
    "Results",
    "best",
    "extract",
    "results",
    "rewards",
]
