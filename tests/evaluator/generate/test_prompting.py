"""Prompts: what they are made of, and that every recipe can be made."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.generate.options import catalogue
from evaluator.generate.plan import Plan
from evaluator.generate.prompting import FOLDER, parts_of, prompt_of, recipe_digest
from problems.prompt import DIALECTS
from tests.evaluator.generate.scripted import plan

GPU = ("--hardware", "h200x4", "--world-size", "4", "--dtype", "bfloat16", "--size", "standard")


def _prompt(own: Plan) -> str:
    entry = next(one for one in catalogue() if one["slug"] == own.targets[0].slug)
    return prompt_of(own, own.targets[0], entry).rendered(())


@pytest.mark.parametrize("backend", sorted(DIALECTS))
@pytest.mark.parametrize("harness", ["zero-shot", "agentic"])
def test_every_backend_has_a_card_and_symmetric_memory_is_explained(
    backend: str, harness: str
) -> None:
    own = plan("--problems", "13", "--backend", backend, "--harness", harness, *GPU)
    text = _prompt(own)
    for heading in ("## Signature", "## Reference", "## Where it runs", "## Symmetric memory"):
        assert text.count(heading) == 1
    assert (FOLDER / f"backend_{backend}.md").read_text() in text
    assert ("`write` keeps the whole file" in text) is (harness == "agentic")
    assert "An example" not in text


@pytest.mark.parametrize("backend", ["cuda", "pytorch", "triton"])
def test_one_shot_shows_an_example_that_compiles(backend: str) -> None:
    own = plan("--problems", "13", "--backend", backend, "--harness", "one-shot", *GPU)
    example = (FOLDER / f"example_{backend}.md").read_text()
    assert example in _prompt(own)
    source = example.removeprefix("```python\n").removesuffix("```\n")
    compile(source, "example", "exec")
    assert "def solution(tensor" in source


def test_without_gpus_nothing_is_said_of_symmetric_memory() -> None:
    assert "## Symmetric memory" not in _prompt(plan("--problems", "1"))


def test_the_recipe_has_a_digest_that_every_part_of_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = plan("--problems", "1", "--harness", "agentic", "--examples", "1", *GPU)
    assert own.recipe_sha256 == recipe_digest(own)
    seen = {recipe_digest(own)}
    for name in parts_of(own):
        folder = tmp_path / name
        folder.mkdir()
        for path in FOLDER.glob("*.md"):
            more = "more\n" if path.stem == name else ""
            (folder / path.name).write_text(path.read_text() + more)
        monkeypatch.setattr("evaluator.generate.prompting.FOLDER", folder)
        seen.add(recipe_digest(own))
    assert len(seen) == 1 + len(parts_of(own))


def test_every_text_is_used_by_some_recipe() -> None:
    used = set()
    for backend in DIALECTS:
        for examples in ("0", "1") if backend != "parallelkittens" else ("0",):
            words = ("--problems", "1", "--backend", backend, "--examples", examples, *GPU)
            used |= set(parts_of(plan(*words, "--harness", "agentic", "--shell")))
            used |= set(parts_of(plan(*words, "--harness", "repeated")))
            pkb = plan(*words, "--harness", "repeated", "--prompt-style", "pkb")
            used |= set(parts_of(pkb))
    assert used == {path.stem for path in FOLDER.glob("*.md")}


def test_problems_are_chosen_by_number_slug_and_category() -> None:
    chosen = plan("--problems", "13,allreduce")
    assert [target.folder for target in chosen.targets] == ["1_allreduce", "13_gemm_allreduce"]
    assert len(plan("--problems", "all").targets) == 87
    category = plan("--problems", "category:collective_primitive")
    assert 1 < len(category.targets) < 87


def test_an_agent_may_choose_no_more_than_the_run_has() -> None:
    (target,) = plan("--problems", "1", "--world-size", "4", "--size", "standard").targets
    assert target.choices.sizes == ("tiny", "standard")
    assert target.choices.world_sizes == (2, 4)


@pytest.mark.parametrize("backend", ["cuda", "triton", "pytorch"])
def test_pkbs_form_has_its_parts_and_no_others(backend: str) -> None:
    words = ("--problems", "13", "--backend", backend, "--prompt-style", "pkb", *GPU)
    own = plan(*words, "--harness", "one-shot")
    text = _prompt(own)
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert [one for one in headings if one[:3] in ("# s", "# u", "## ")] == [
        *("# system", "# user", "## Example", "## Program", "## Precision", "## Hardware"),
        "## Answer",
    ]
    assert "dist.all_reduce(c)" in text
    assert f"13_gemm_allreduce_{backend}.py" in text
    assert "bound is" not in text
    assert own.recipe == "pkb-one-shot"
    bare = plan(*words, "--harness", "zero-shot")
    assert bare.recipe == "pkb-zero-shot"
    assert "## Example" not in _prompt(bare)
    assert own.recipe_sha256 != bare.recipe_sha256


def test_pkbs_form_is_of_one_answer() -> None:
    with pytest.raises(ValueError, match="asks for one answer"):
        plan("--problems", "1", "--prompt-style", "pkb", "--harness", "agentic")
