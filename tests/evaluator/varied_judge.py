"""Forks judges tuned for tests or without a defence, each as its environment says: a server that
imports torch once for all of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from evaluator.judge import prefork, process
from tests.evaluator import tuned_judge
from tests.evaluator.mutant_judge import MUTATIONS
from tests.evaluator.tuned_judge import VARIATION, brisk


def varied(judge: Callable[[], int]) -> Callable[[], int]:
    """Vary the judge that begins, before it does anything else. Others do not meet the change:
    a judge is a process of its own."""

    def begin() -> int:
        name = os.environ.pop(VARIATION)
        if name in MUTATIONS:
            brisk()
            MUTATIONS[name]()
        else:
            vars(tuned_judge)[name]()
        return judge()

    return begin


if __name__ == "__main__":
    vars(process)["main"] = varied(process.main)
    prefork.main(int(sys.argv[1]), *sys.argv[2:])
