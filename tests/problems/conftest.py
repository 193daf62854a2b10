"""Ranks that live as long as the test session, so that torch is imported once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from problems.running.ranks import RankPool


@pytest.fixture(scope="session")
def two_ranks() -> Iterator[RankPool]:
    with RankPool(2) as ranks:
        yield ranks


@pytest.fixture(scope="session")
def four_ranks() -> Iterator[RankPool]:
    with RankPool(4) as ranks:
        yield ranks
