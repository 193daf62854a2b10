"""What the audit kept of every problem, and how it merges rounds."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

import problems
from problems import health, health_table
from problems.answers import ANSWERS, HONEST
from problems.ranks import GlooRanks, RankFailure
from problems.screen import Finding

NAMES = problems.names()


def finding(answer: str, *, accepted: bool | None, error: float = 0.5) -> Finding:
    return Finding(
        profile="hardened",
        answer=answer,
        honest=answer in HONEST,
        accepted=accepted,
        why="why",
        errors={} if accepted is None else {"float32": error},
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_stored_audit_is_of_this_code(name: str) -> None:
    """Mend it with `python -m problems audit <slug>`."""
    module = problems.load(name)
    found = health.stored()[module.slug]
    assert found["behaviour"] == health.behaviour(module)
    assert found["secrets"] >= 100
    rows = {(row["profile"], row["answer"]): row for row in found["findings"]}
    assert set(rows) == {(p, a) for p in ("upstream", "hardened") for a in ANSWERS}


@pytest.mark.parametrize("name", NAMES)
def test_hardened_inputs_accept_all_honest_answers_and_no_wrong_one(name: str) -> None:
    module = problems.load(name)
    if not module.problem.scored:
        return  # says in public why no inputs can do it
    for row in health.stored()[module.slug]["findings"]:
        if row["profile"] == "hardened" and row["accepted"] is not None:
            assert row["accepted"] is (row["answer"] in HONEST), row


def test_the_audit_tells_what_the_published_check_lets_pass() -> None:
    accepted = {
        (slug, row["answer"]): row["accepted"]
        for slug, found in health.stored().items()
        for row in found["findings"]
        if row["profile"] == "upstream"
    }
    assert accepted["allreduce", "constant"]
    assert accepted["openclip_contrastive_loss", "local-only"]
    assert accepted["gnn_neighbor_sampling", "local-only"]
    assert not accepted["gemm_allreduce", "split-products"]


def test_the_page_in_the_docs_is_of_the_stored_audit() -> None:
    assert health_table.PATH.read_text() == health_table.table(health.stored())


def test_the_worst_of_several_rounds_counts() -> None:
    calm = [finding("zeros", accepted=False, error=9.0), finding("reference", accepted=True)]
    narrow = [finding("zeros", accepted=False, error=2.0), finding("reference", accepted=True)]
    zeros, honest = health.merged([calm, narrow, calm])
    assert (zeros.errors["float32"], zeros.accepted) == (2.0, False)
    passed = [finding("zeros", accepted=True, error=0.1), replace(honest, accepted=False)]
    zeros, honest = health.merged([calm, passed])
    assert (zeros.accepted, honest.accepted) == (True, False)


def test_margins_are_taken_from_hardened_inputs_only() -> None:
    rows = [
        {**vars(finding("zeros", accepted=False, error=7.0))},
        {**vars(finding("constant", accepted=False)), "errors": {"float32": None}},
        {**vars(finding("low-precision", accepted=None))},
        {**vars(finding("reference", accepted=True, error=0.25))},
        {**vars(finding("stale-rows", accepted=False, error=1.0)), "profile": "upstream"},
    ]
    assert health.margins(rows) == (0.25, 7.0)
    assert health.margins([]) == (0.0, inf)


def test_the_digest_follows_code_and_tolerances_but_no_texts() -> None:
    module = problems.load("collective_primitive.allreduce")
    text = module.path.read_text()

    class Elsewhere:
        def __init__(self, text: str) -> None:
            self.text = text

        def read_text(self) -> str:
            return self.text

    def digest(text: str) -> str:
        return health.behaviour(replace(module, path=Elsewhere(text)))  # type: ignore[arg-type]

    assert digest(text.replace("title=", "title='other ' ")) == digest(text)
    assert digest(text.replace("float32=", "float32=2 * ")) != digest(text)
    assert digest(text.replace("tensor.clone", "tensor.contiguous().clone")) != digest(text)


def test_an_audit_runs_several_problems_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["collective_primitive.allreduce", "collective_primitive.alltoall"]
    asked: list[tuple[str, str, int]] = []

    def quick(ranks: GlooRanks, name: str, profile: str, **_: object) -> list[Finding]:
        asked.append((name, profile, ranks.world_size))
        return [replace(finding("zeros", accepted=False), profile=profile)]

    monkeypatch.setattr(health, "screen", quick)
    found = dict(health.audit(names, health.Plan(secrets=2), jobs=2))
    assert set(found) == {"allreduce", "alltoall"}
    for state in found.values():
        assert isinstance(state, health.Health)
        assert [f.profile for f in state.findings] == ["upstream", "hardened"]
    for name in names:
        hardened = [(name, "hardened", world_size) for world_size in (2, 2, 4, 4)]
        assert [a for a in asked if a[0] == name and a[1] == "hardened"] == hardened


def test_one_failing_problem_does_not_end_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    def quick(ranks: GlooRanks, name: str, profile: str, **_: object) -> list[Finding]:
        if name.endswith("allreduce"):
            raise RankFailure("rank 0: it died")
        return [finding("zeros", accepted=False)]

    monkeypatch.setattr(health, "screen", quick)
    names = ["collective_primitive.allreduce", "collective_primitive.alltoall"]
    found = dict(health.audit(names, health.Plan(secrets=1), jobs=1))
    assert isinstance(found["allreduce"], RankFailure)
    assert isinstance(found["alltoall"], health.Health)
