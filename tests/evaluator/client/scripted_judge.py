"""Stands before an example of the docs: a judge that reads kernels, in place of a site's.

A kernel that calls `all_reduce` is right, one with `ours` failed for a reason of ours, any other is
wrong. Run with the wheel on the path.
"""

import tempfile
from typing import Any

import pkb
from pkb.client import judge as _module

site, token, logs = "https://leaderboard.example.org", "a token", tempfile.mkdtemp()
CODE = "def solution(tensor):\n    dist.all_reduce(tensor)\n    return tensor\n"
answer = f"Here it is.\n```python\n{CODE}```\n"


class _Flight:
    """Answers as soon as it is asked."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self.answered: list[tuple[Any, dict[str, Any]]] = []
        self.has_unsent, self.has_room = False, True

    @property
    def is_waiting(self) -> bool:
        return bool(self.items)

    def add(self, item: Any) -> None:
        self.items.append(item)

    def send(self) -> None:
        """Send nothing: there is no site."""

    def fetch(self) -> None:
        item = self.items.pop(0)
        source = item.source or ""
        verdict = "infra_error" if "ours" in source else "output_mismatch"
        verdict = "ok" if "all_reduce" in source else verdict
        report = {"verdict": verdict, "flags": [], "trials_passed": 0, "feedback": verdict}
        self.answered.append((item, report))

    def take(self) -> list[tuple[Any, dict[str, Any]]]:
        found, self.answered = self.answered, []
        return found

    def cancel(self) -> None:
        self.items = []


class ScriptedJudge(_module.BaseJudge):  # type: ignore[misc]
    def __init__(self, site: Any = None, token: Any = None, *, reward: str = "correct") -> None:
        super().__init__(reward, False)

    def _flight(self) -> _Flight:
        return _Flight()


pkb.Judge = _module.Judge = ScriptedJudge
