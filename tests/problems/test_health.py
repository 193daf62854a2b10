"""What the audit kept of every problem, and how it merges rounds."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest

import problems
from problems.__main__ import main
from problems.audit import health
from problems.audit.answers import HONEST, answers
from problems.audit.screen import Finding, outcomes_on_rank, screen
from problems.running.ranks import RankFailure, RankPool
from problems.sources import behaviour

NAMES = problems.names()
LEAST_SEEDS, LEAST_HONEST_SEEDS = 18, 100


def finding(answer: str, *, accepted: bool | None, error: float = 0.5) -> Finding:
    return Finding(
        profile="hardened",
        answer=answer,
        honest=answer in HONEST,
        accepted=accepted,
        why="why",
        errors={} if accepted is None else {"float32": error},
        rms_errors={} if accepted is None else {"float32": error / 4},
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_stored_audit_is_of_this_code(name: str) -> None:
    """Mend it with `python -m problems audit <slug>`."""
    module = problems.load(name)
    found = health.stored()[module.slug]
    for key, part in found.items():
        assert part["behaviour"] == behaviour(module, key.partition("-")[0]), key
    assert found["hardened"]["seeds"] >= LEAST_SEEDS
    assert found["hardened"]["honest_seeds"] >= LEAST_HONEST_SEEDS
    tried = {key: {row["answer"] for row in part["findings"]} for key, part in found.items()}
    assert tried.pop("upstream") >= set(answers(module, "upstream"))
    for key, names in tried.items():
        assert names == set(answers(module, "hardened")), key


@pytest.mark.parametrize("name", NAMES)
def test_hardened_inputs_accept_all_honest_answers_and_no_wrong_one(name: str) -> None:
    module = problems.load(name)
    if not module.problem.scored:
        return  # says in public why no inputs can do it
    for key in ("hardened", "hardened-standard"):
        for row in health.stored()[module.slug].get(key, {"findings": ()})["findings"]:
            assert row["accepted"] in (None, row["answer"] in HONEST), row


def test_the_audit_tells_what_the_published_check_lets_pass() -> None:
    accepted = {
        (slug, row["answer"]): row["accepted"]
        for slug, found in health.stored().items()
        for row in found["upstream"]["findings"]
    }
    assert accepted["allreduce", "constant"]
    assert accepted["openclip_contrastive_loss", "local-only"]
    assert accepted["gnn_neighbor_sampling", "local-only"]
    assert not accepted["gemm_allreduce", "split-products"]


def test_the_worst_of_several_rounds_counts() -> None:
    calm = [finding("zeros", accepted=False, error=9.0), finding("reference", accepted=True)]
    narrow = [finding("zeros", accepted=False, error=2.0), finding("reference", accepted=True)]
    zeros, honest = health.merged([calm, narrow, calm])
    assert (zeros.errors["float32"], zeros.accepted) == (2.0, False)
    passed = [finding("zeros", accepted=True, error=0.1), replace(honest, accepted=False)]
    zeros, honest = health.merged([calm, passed])
    assert (zeros.accepted, honest.accepted) == (True, False)


def test_rounds_in_which_an_answer_is_none_do_not_count() -> None:
    none = [finding("first-counts", accepted=None)]
    found = [replace(finding("first-counts", accepted=False), errors={"float16": 3.0})]
    more = [replace(finding("first-counts", accepted=False), errors={"float32": 2.0})]
    (merged,) = health.merged([none, found, more])
    assert (merged.accepted, merged.errors) == (False, {"float16": 3.0, "float32": 2.0})
    assert health.merged([none, none])[0].accepted is None


def test_a_round_of_honest_answers_alone_counts_for_them() -> None:
    every = [finding("zeros", accepted=False), finding("reference", accepted=True)]
    zeros, honest = health.merged([every, [finding("reference", accepted=True, error=0.75)]])
    assert (zeros.errors["float32"], honest.errors["float32"]) == (0.5, 0.75)


def test_the_digest_follows_code_and_tolerances_but_no_texts() -> None:
    module = problems.load("collective_primitive.allreduce")
    text = module.path.read_text()

    class Elsewhere:
        def __init__(self, text: str) -> None:
            self.text = text

        def read_text(self) -> str:
            return self.text

    def digest(text: str, profile: str = "hardened") -> str:
        there = replace(module, path=Elsewhere(text))  # type: ignore[arg-type]
        return behaviour(there, profile)

    assert digest(text.replace("title=", "title='other ' ")) == digest(text)
    wider = text.replace("float32=", "float32=2 * ")
    assert digest(wider) != digest(text)
    assert digest(wider, "upstream") == digest(text, "upstream")
    assert digest(text.replace("tensor.clone", "tensor.contiguous().clone")) != digest(text)


def test_an_audit_runs_several_problems_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["collective_primitive.allreduce", "collective_primitive.alltoall"]
    asked: list[tuple[str, str, str, int, bool]] = []

    def quick(
        ranks: RankPool, name: str, profile: str, *, size: str, secret: bytes, only_honest: bool
    ) -> list[Finding]:
        asked.append((name, profile, size, ranks.world_size, only_honest))
        return [replace(finding("zeros", accepted=False), profile=profile)]

    monkeypatch.setattr(health, "screen", quick)
    upstream, hardened = health.plans(seeds=12, honest_seeds=18)
    both = ((w, only_honest) for w in (2, 4) for only_honest in (False, False, True))
    for plan, expected in (
        (upstream, [("upstream", "standard", 2, False)]),
        (hardened, [("hardened", "tiny", *each) for each in both]),
    ):
        found = dict(health.audit(names, plan, jobs=2))
        assert set(found) == {"allreduce", "alltoall"}
        for name in names:
            calls = [call[1:] for call in asked if call[0] == name and call[1] == plan.profile]
            assert calls == expected


def test_what_is_stored_replaces_the_same_profile_and_size_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "PATH", tmp_path / "fixtures" / "health.json")
    assert health.stored() == {}
    larger = health.plans(seeds=6, honest_seeds=6, cuda=True, is_shared=True, size="standard")[1]
    for plan in (*health.plans(seeds=18, honest_seeds=100, cuda=True), larger):
        answer = replace(finding("zeros", accepted=False, error=inf), profile=plan.profile)
        found = health.Health(behaviour="b", plan=plan, torch="2", findings=(answer,))
        health.store("reduce", found)
        health.store("nothing_like_it", found)
    (kept,) = health.stored().items()
    assert kept[0] == "reduce"
    told = {key: (part["seeds"], part["honest_seeds"]) for key, part in kept[1].items()}
    assert told == {"upstream": (2, 2), "hardened": (18, 102), "hardened-standard": (6, 6)}
    assert [part["findings"][0]["profile"] for part in kept[1].values()] == list(told)
    assert kept[1]["hardened"]["findings"][0]["errors"] == {"float32": None}


def dies_of_allreduce(ranks: RankPool, name: str, profile: str, **_: object) -> list[Finding]:
    if name.endswith("allreduce"):
        raise RankFailure("rank 0: it died")
    return [finding("zeros", accepted=False)]


def test_one_failing_problem_does_not_end_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "screen", dies_of_allreduce)
    names = ["collective_primitive.allreduce", "collective_primitive.alltoall"]
    plan, _ = health.plans(seeds=1, honest_seeds=1)
    found = dict(health.audit(names, plan, jobs=1))
    assert isinstance(found["allreduce"], RankFailure)
    assert isinstance(found["alltoall"], health.Health)


def test_a_problem_that_cannot_be_screened_is_a_surprise(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("problems.audit.screen.screen", dies_of_allreduce)
    assert main(["screen", "allreduce", "alltoall"]) == 1
    assert "it died" in capsys.readouterr().out
    assert main(["screen", "alltoall"]) == 0


def test_a_wrong_answer_that_found_no_memory_is_not_rejected() -> None:
    class Full(RankPool):
        def run(self, task: Any, *args: Any, **kwargs: Any) -> list[Any]:
            if task is outcomes_on_rank and args[1] not in HONEST:
                raise RankFailure("rank 0: torch.OutOfMemoryError: CUDA out of memory")
            return [{}] * self.world_size

    with pytest.raises(RankFailure, match="out of memory"):
        screen(Full(2), "collective_primitive.allreduce", "hardened")
