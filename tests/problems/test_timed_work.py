"""How much of `cost` timed calls need, measured and kept."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import problems
from problems import timed_work
from problems.__main__ import main
from problems.audit import health, measured_work
from problems.audit.measured_work import least_share, measured, measured_share
from problems.running.ranks import RankFailure, RankPool
from problems.timed_work import work_share

SINKHORN = problems.load(problems.find("dinov2_distributed_sinkhorn_knopp"))


def test_timed_calls_whose_options_ask_for_less_need_less_than_a_plain_call(
    two_ranks: RankPool,
) -> None:
    name = problems.find(SINKHORN.slug)
    assert 0.5 < measured_share(two_ranks, name) < 0.9


def test_the_share_is_the_least_of_all_kinds_of_work_that_a_plain_call_needs() -> None:
    assert least_share([(10, 0, 4), (20, 0, 2), (20, 0, 4)]) == 0.75
    assert least_share([(10, 0, 4), (20, 9, 4), (10, 0, 4)]) == 1.0


def test_the_worst_world_size_counts_rounded_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured_work, "_share", lambda name, size: {2: 0.999, 4: 0.857}[size])
    assert dict(measured([problems.find("allreduce")])) == {"allreduce": 0.85}


def test_every_problem_has_a_kept_share_and_no_other() -> None:
    kept = timed_work.stored()
    assert set(kept) == {problems.load(name).slug for name in problems.names()}
    assert all(0 < share <= 1 for share in kept.values())
    assert work_share(SINKHORN) == kept[SINKHORN.slug] < 1


def test_reading_a_share_loads_no_torch() -> None:
    code = "import sys, problems.timed_work as t; t.stored(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_audit_keeps_what_it_measured_and_counts_what_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def found(name: str, world_size: int) -> float:
        if name.endswith("alltoall"):
            raise RankFailure("rank 0: it died")
        return 0.5

    monkeypatch.setattr(measured_work, "_share", found)
    monkeypatch.setattr(timed_work, "PATH", tmp_path / "timed_work.json")
    monkeypatch.setattr(health, "audit", lambda names, plan, jobs: iter(()))
    assert main(["audit", "allreduce", "alltoall"]) == 1
    assert json.loads(timed_work.PATH.read_text()) == {"allreduce": 0.5}
    said = capsys.readouterr().out
    assert "allreduce: a timed call needs 0.50 of cost" in said
    assert "alltoall: rank 0: it died" in said


def test_an_audit_of_one_profile_measures_no_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timed_work, "PATH", tmp_path / "timed_work.json")
    monkeypatch.setattr(health, "audit", lambda names, plan, jobs: iter(()))
    assert main(["audit", "allreduce", "--profile", "hardened"]) == 0
    assert timed_work.stored() == {}


def test_an_unmeasured_problem_counts_as_whole_and_is_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = problems.find(SINKHORN.slug)
    assert health.unaudited([name]) == []
    monkeypatch.setattr(timed_work, "PATH", tmp_path / "timed_work.json")
    assert work_share(SINKHORN) == 1
    assert health.unaudited([name]) == [SINKHORN.slug]
