"""A site takes in what `pkb convert` makes of other packages' recordings."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.management import call_command

from evaluator.client.main import main
from leaderboard.models import Hardware, Making, Submission, Transcript
from tests.leaderboard import factory

RECORDINGS = Path(__file__).parents[1] / "evaluator" / "client" / "recordings"
PROBLEMS = {1: "allreduce", 2: "allgather", 13: "gemm_allreduce"}


@pytest.mark.parametrize(
    ("name", "attempts", "sampling"),
    [
        ("inspect.json", 6, {"temperature": 0.5, "max_output_tokens": 4096}),
        ("verifiers_0_1", 4, {"temperature": 0.5, "max_output_tokens": 512}),
        ("verifiers_0_4", 3, None),
        ("1_allreduce_cuda.traj.json", 1, None),
    ],
)
def test_it_stores_their_attempts(
    db: None, tmp_path: Path, name: str, attempts: int, sampling: dict[str, float] | None
) -> None:
    for number, slug in PROBLEMS.items():
        factory.make_problem(number, slug)
    named = {"slug": "h200x4", "title": "4 x NVIDIA H200", "device": "cuda"}
    Hardware.objects.create(**named, max_world_size=4)
    out = tmp_path / "out.tar.gz"
    words = ["convert", str(RECORDINGS / name), "-o", str(out), "--backend", "cuda"]
    assert main(words) == 0
    about = ("--model=M", "--harness=agentic", "--dtype=float32")
    call_command("import_submission", out, *about, verbosity=0)
    submission = Submission.objects.get()
    assert submission.manifest.get("sampling") == sampling
    assert Making.objects.filter(kernel__submission=submission).count() == attempts
    assert not Making.objects.filter(output_tokens=None).exists()
    assert Transcript.objects.filter(submission=submission).count() == attempts
