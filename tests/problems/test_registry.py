"""Finding problems, and the document exported for the site."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import problems
from problems.__main__ import main
from problems.audit import checks, health
from problems.catalogue import SHORT_PATH, catalogue, short, stored


def test_the_folders_are_categories_and_numbers_are_unique() -> None:
    names = problems.names()
    numbers = [problems.load(name).problem.number for name in names]
    assert numbers == sorted(set(numbers))
    assert {name.partition(".")[0] for name in names} <= set(problems.CATEGORIES)


@pytest.mark.parametrize("text", ["gemm_allreduce", "13", "tensor_parallel.gemm_allreduce"])
def test_a_problem_is_found_by_slug_number_and_name(text: str) -> None:
    assert problems.find(text) == "tensor_parallel.gemm_allreduce"


def test_an_unknown_problem_names_its_neighbours() -> None:
    with pytest.raises(problems.UnknownProblem, match="did you mean gemm_allreduce"):
        problems.find("gem_allreduce")
    with pytest.raises(problems.UnknownProblem, match="known are allreduce, allgather"):
        problems.find("0")
    with pytest.raises(problems.UnknownProblem, match="use find"):
        problems.load("../secrets.allreduce")


def test_listing_names_loads_no_torch() -> None:
    code = "import sys, problems; problems.find('13'); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_exported_document_is_fresh() -> None:
    """Mend it with `python -m problems export`."""
    assert stored() == catalogue()
    assert SHORT_PATH.read_text() == short(stored())


def test_the_command_line_lists_and_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    assert "13  tensor_parallel.gemm_allreduce" in capsys.readouterr().out
    assert main(["screen", "nothing-like-it"]) == 2
    assert "no problem is called" in capsys.readouterr().err


def test_the_notice_credits_every_source() -> None:
    notice = (problems.FOLDER.parent / "NOTICE").read_text()
    sources = {problems.load(name).problem.source for name in problems.names()}
    assert not [source for source in sources if source not in notice]


def test_a_check_says_what_is_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(checks, "complaints", lambda names: iter(()))
    assert main(["check", "allreduce", "reduce"]) == 0
    assert capsys.readouterr().out == "every rule is kept\n"
    kept = health.stored()
    kept["reduce"]["upstream"]["behaviour"] = "of other code"
    del kept["allreduce"]["hardened"]
    other = tmp_path / "problem-health.json"
    other.write_text(json.dumps(kept))
    monkeypatch.setattr(health, "PATH", other)
    exported = stored()
    exported["problems"][0]["title"] = "of another file"
    monkeypatch.setattr("problems.catalogue.stored", lambda: exported)
    assert main(["check", "allreduce", "reduce", "scatter"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "every rule is kept",
        "still due: python -m problems audit allreduce reduce (no audit of this code is kept)",
        "still due: python -m problems export (the catalogue lacks what is new of allreduce)",
    ]
