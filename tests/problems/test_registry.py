"""Finding problems, and the document exported for the site."""

from __future__ import annotations

import subprocess
import sys

import pytest

import problems
from problems.__main__ import main
from problems.catalogue import catalogue, stored, stored_health
from problems.screen import ANSWERS, HONEST


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
    """Mend it with `python -m problems export` (`--keep-health` when no inputs changed)."""
    assert stored() == catalogue(stored_health())


def test_health_says_for_every_scored_problem_that_hardened_inputs_hold() -> None:
    for entry in stored()["problems"]:
        found = {(row["profile"], row["answer"]): row for row in entry["health"]}
        assert len(found) == 2 * len(ANSWERS)
        assert all(row["why"] for row in entry["health"])
        if entry["scored"]:
            accepted = {a for a in ANSWERS if found["hardened", a]["accepted"]}
            assert accepted == set(HONEST)


def test_health_tells_what_the_published_check_lets_pass() -> None:
    rows = {
        (entry["slug"], row["answer"]): row["accepted"]
        for entry in stored()["problems"]
        for row in entry["health"]
        if row["profile"] == "upstream"
    }
    assert rows["allreduce", "constant"]
    assert rows["openclip_contrastive_loss", "local-only"]
    assert rows["gnn_neighbor_sampling", "local-only"]
    assert not rows["gemm_allreduce", "split-products"]


def test_the_command_line_lists_and_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    assert "13  tensor_parallel.gemm_allreduce" in capsys.readouterr().out
    assert main(["screen", "nothing-like-it"]) == 2
    assert "no problem is called" in capsys.readouterr().err


def test_the_notice_credits_every_source() -> None:
    notice = (problems.FOLDER.parent / "NOTICE").read_text()
    sources = {problems.load(name).problem.source for name in problems.names()}
    assert not [source for source in sources if source not in notice]
