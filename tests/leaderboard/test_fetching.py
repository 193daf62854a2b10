"""`pkb fetch --best` and `pkb.best`: a kernel comes with its origin, and asks before it runs."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from evaluator.client import best as best_module
from evaluator.client.best import best, check_alike
from evaluator.client.failures import Misused
from evaluator.client.main import main
from leaderboard.models import Problem, Submission
from tests.leaderboard import factory

pytestmark = pytest.mark.django_db(transaction=True)
torch = pytest.importorskip("torch")


@pytest.fixture
def site(live_server: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """The site that the client asks, without a token, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PKB_SITE", live_server.url)
    monkeypatch.delenv("PKB_TOKEN", raising=False)
    return str(live_server.url)


def _judged(problem: Problem, name: str, speedup: float, **fields: Any) -> Submission:
    made = factory.make_submission(name)
    Submission.objects.filter(pk=made.pk).update(**fields)
    factory.make_judged(made, problem, speedup=speedup)
    return made


def test_the_best_is_written_with_its_licence_and_origin(
    site: str, problem: Problem, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _judged(problem, "Slow One", 1.1)
    _judged(problem, "Fast\u202eOne", 2.5, licence="MIT")
    assert main(["fetch", "1", "--best"]) == 0, capsys.readouterr().err
    text = (tmp_path / "1_allreduce_pytorch.py").read_text()
    heading, source = text.split("# sha256 of what follows: ")
    assert "# licence: MIT\n" in heading
    assert "# written by: Fast[U+202E]One\n" in heading
    assert f"{site}/runs/" in heading
    digest, _, source = source.partition("\n")
    assert hashlib.sha256(source.encode()).hexdigest() == digest
    assert main(["fetch", "1", "--best"]) == 2
    assert main(["fetch", "1"]) == 2


def test_one_without_a_licence_says_so_and_other_hardware_is_refused(
    site: str, problem: Problem, capsys: pytest.CaptureFixture[str]
) -> None:
    _judged(problem, "Fast One", 2.5)
    assert main(["fetch", "1", "--best"]) == 0
    assert "# licence: none" in capsys.readouterr().out
    assert main(["fetch", "1", "--best", "--hardware", "h200x2", "-o", "other.py"]) == 3


def test_a_problem_without_a_kernel_has_none_to_fetch(site: str, problem: Problem) -> None:
    assert main(["fetch", "1", "--best"]) == 2


def test_nothing_runs_without_a_yes(
    site: str, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    _judged(problem, "Fast One", 2.5)
    monkeypatch.setattr(best_module, "_function", lambda *_: pytest.fail("it ran"))
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    with pytest.raises(Misused, match="Nobody can be asked"):
        best("allreduce", [torch.ones(4)])
    with pytest.raises(Misused, match="The best kernel is"):
        best("allreduce", [torch.ones(4)], trusted="0" * 64)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    for answer in ("", "n", "yes please"):
        monkeypatch.setattr("builtins.input", lambda _, said=answer: said)
        with pytest.raises(Misused, match="You declined"):
            best("allreduce", [torch.ones(4)])


def test_an_answer_that_differs_is_refused_and_arguments_count() -> None:
    values = [torch.randn(64)]

    def doubled(x: Any) -> Any:
        return 2 * x

    def rounded(x: Any) -> Any:
        return 2 * x * (1 + 1e-7)

    def writes(x: Any) -> Any:
        answer = 2 * x
        x += 1
        return answer

    check_alike("allreduce", rounded, doubled, values)
    for wrong in (lambda x: 2.001 * x, writes, lambda x: [2 * x, 1], lambda x: (2 * x).double()):
        with pytest.raises(Misused, match="differently"):
            check_alike("allreduce", wrong, doubled, values)
    kept = values[0].clone()
    assert torch.equal(values[0], kept)
