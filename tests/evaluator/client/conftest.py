"""What tests of the client share: it keeps nothing of this user's, and never really waits."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluator.client.main import main

Pkb = Callable[..., int]


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that holds the client's own, and no token or site of this environment."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("PKB_SITE", "PKB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "config" / "pkb"


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long the client would have waited, each time."""
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    return waited


@pytest.fixture
def pkb() -> Pkb:
    """Runs a command in this process; returns its exit status."""
    return lambda *words: main([str(word) for word in words])
