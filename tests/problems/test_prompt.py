"""What a model is given of a problem: everything that it needs, the same each time."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import pytest

import problems
from problems.__main__ import main
from problems.catalogue import told
from problems.environment import environment_text, of_release
from problems.prompt import DIALECTS, FENCED, file_name, prompt, signature
from problems.statement import listed
from problems.topology import class_called, hardware_text, problem_text

ASKED = {"backend": "cuda", "world_size": 4, "dtype": "bfloat16", "size": "standard"}


def of(name: str) -> dict[str, Any]:
    return told(problems.load(problems.find(name)))


def prompted(problem: dict[str, Any], **other: Any) -> str:
    hardware = problem_text(class_called("h200x4"), problem)
    assert hardware
    asked = {**ASKED, **other}
    versions = of_release("cuda", "4 x NVIDIA H200")
    software = environment_text(versions, asked["backend"])
    return prompt(problem, **{"hardware_text": f"{hardware} {software}", **asked})


@pytest.mark.parametrize("name", problems.names())
def test_every_problem_tells_all_that_a_model_needs(name: str) -> None:
    module = problems.load(name)
    problem = told(module)
    for backend in DIALECTS:
        text = prompted(problem, backend=backend)
        for part in (
            listed(module.problem.statement),
            problem["reference_source"].rstrip(),
            hardware_text(class_called("h200x4")),
            f"Who exchanges data with whom: {module.problem.topology}.",
            DIALECTS[backend],
            file_name(problem, backend),
        ):
            assert part in text
        assert text == prompted(told(module), backend=backend)


@pytest.mark.parametrize("name", problems.names())
def test_the_signature_is_the_references(name: str) -> None:
    reference = problems.load(name).reference
    line = signature(told(problems.load(name))["reference_source"])
    asked = ast.parse(line).body[0]
    assert isinstance(asked, ast.FunctionDef)
    assert asked.name == "solution"
    assert [one.arg for one in asked.args.args] == list(inspect.signature(reference).parameters)
    assert len(asked.args.defaults) == sum(
        one.default is not one.empty for one in inspect.signature(reference).parameters.values()
    )


def test_the_catalogue_that_is_stored_makes_the_same_prompt() -> None:
    """For whoever must not load torch."""
    from problems.catalogue import stored

    kept = next(one for one in stored()["problems"] if one["slug"] == "gemm_allreduce")
    assert prompted(kept) == prompted(of("gemm_allreduce"))


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"world_size": 2}, "2 ranks, in bfloat16, size `standard`"),
        ({"size": "large"}, "- A_local: bfloat16 [8192, 512]"),
        ({"dtype": "float32"}, "the exact answer, in float32."),
        ({"backend": "triton"}, "13_gemm_allreduce_triton.py"),
    ],
)
def test_what_is_asked_is_told(other: dict[str, Any], says: str) -> None:
    text = prompted(of("gemm_allreduce"))
    assert says not in text
    assert says in prompted(of("gemm_allreduce"), **other)


def test_the_least_work_is_the_catalogues() -> None:
    assert "receive 3 MiB, in one exchange, move 4 MiB" in prompted(of("13"))
    assert "receive 6 MiB, in one exchange, move 8 MiB" in prompted(of("13"), dtype="float32")
    assert "2 exchanges that must wait for each other" in prompted(of("ring_attention_pp"))


def test_moved_data_has_to_be_exact() -> None:
    text = prompted(of("allgather"))
    assert "x must equal ref exactly" in text
    assert "rms(ref)" not in text


@pytest.mark.parametrize(
    "wrong",
    [{"backend": "opencl"}, {"world_size": 3}, {"dtype": "int8"}, {"size": "enormous"}],
)
def test_what_a_problem_does_not_have_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"allreduce has no .*{next(iter(wrong.values()))}: use"):
        prompted(of("allreduce"), **wrong)


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prompt", "gemm_allreduce", "--backend", "triton"]) == 0
    assert capsys.readouterr().out == prompted(of("13"), backend="triton") + FENCED
    assert main(["prompt", "1", "--hardware", "8 x NVIDIA B200", "--dtype", "float32"]) == 0
    printed = capsys.readouterr().out
    assert "8 x NVIDIA B200 SXM" in printed
    assert "8 ranks, in float32" in printed
    assert main(["prompt", "1", "--hardware", "abacus"]) == 2
    assert "use cpu, h200x2, h200x4" in capsys.readouterr().err
    assert main(["prompt", "1", "--hardware", "1 x NVIDIA B200"]) == 2
    assert "does not run on 1 ranks" in capsys.readouterr().err


@pytest.mark.parametrize("slug", ["65", "66"])
def test_the_reference_is_shown_without_what_makes_inputs(slug: str) -> None:
    source = of(slug)["reference_source"]
    assert "RankContext" not in source
    exec(compile(source, "reference", "exec", dont_inherit=True), {})  # it runs alone
