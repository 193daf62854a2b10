"""`pkb`, as this site serves it: one file, run by a Python that has nothing installed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from django.test import Client
from django.utils import timezone

from evaluator import __version__
from evaluator.client.main import main
from evaluator.messages.report import Verdict
from leaderboard.delivery.client_archive import client, packed
from leaderboard.models import ApiToken, Run, Scope, Submission
from leaderboard.settings import BASE_DIR
from tests.leaderboard import factory
from tests.leaderboard.uploads import GOOD

ABOUT = ("--model", "GPT-5.5", "--harness", "human")


class Done(NamedTuple):
    """What a command left."""

    status: int
    out: str
    err: str


Pkb = Callable[..., Done]


@pytest.fixture
def token(db: None) -> str:
    owner = factory.make_user("owner")
    return ApiToken.objects.issue(scope=Scope.SUBMIT, name="test", owner=owner)[1]


@pytest.fixture
def pyz(tmp_path: Path) -> Pkb:
    """Runs the file that the site serves, by a Python that has nothing installed."""
    program = tmp_path / "pkb.pyz"
    program.write_bytes(Client().get("/pkb.pyz").content)
    env = {"PATH": os.environ["PATH"], "XDG_CONFIG_HOME": str(tmp_path / "config")}

    def run(*words: object, stdin: str = "") -> Done:
        command = [sys.executable, "-I", "-S", str(program), *map(str, words)]
        done = subprocess.run(
            command, cwd=tmp_path, env=env, input=stdin, capture_output=True, text=True, check=False
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def pkb(
    live_server: Any,
    token: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Pkb:
    """Runs the client in this process, for this site and with a token of `owner`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PKB_SITE", live_server.url)
    monkeypatch.setenv("PKB_TOKEN", token)

    def run(*words: object) -> Done:
        status = main([str(word) for word in words])
        return Done(status, *capsys.readouterr())

    return run


@pytest.mark.django_db(transaction=True)
def test_a_kernel_goes_from_a_skeleton_to_its_verdict(
    problem: object, live_server: Any, token: str, pyz: Pkb, tmp_path: Path
) -> None:
    done = pyz("login", live_server.url, stdin=f"{token}\n")
    assert done.status == 0, done.err
    assert token not in done.out + done.err
    assert pyz("new", 1, "--agent").out == "1_allreduce_pytorch.py\n"
    told = (tmp_path / "AGENTS.md").read_text()
    assert f"{live_server.url}/problems/1-allreduce.md" in told
    assert (tmp_path / ".claude/skills/pkb-kernel/SKILL.md").read_text().endswith(told)
    source = (tmp_path / "1_allreduce_pytorch.py").read_text()
    compile(source, "kernel", "exec")
    assert "tensor: torch.Tensor" in source
    done = pyz("check", "1_allreduce_pytorch.py")
    assert (done.status, "fill it in" in done.out) == (1, True)

    (tmp_path / "1_allreduce_pytorch.py").write_bytes(GOOD)
    assert pyz("check", "1_allreduce_pytorch.py").out.endswith("fine\n")
    assert pyz("--version").out == f"pkb {__version__}\n"
    first, again = (pyz("submit", "1_allreduce_pytorch.py", *ABOUT) for _ in range(2))
    assert first.status == 0, first.err
    assert first.out == again.out
    assert Submission.objects.count() == 1
    run = Run.objects.select_related("kernel__problem").get()
    assert str(run.pk) in first.out

    factory.finish(run, factory.make_report(run))
    watched = pyz("watch", run.pk)
    assert watched.status == 0, watched.err
    assert watched.out.startswith("OK  allreduce: Correct in every trial.")


@pytest.mark.django_db(transaction=True)
def test_a_folder_is_handed_in_watched_cancelled_and_compared(
    problem: object, pkb: Pkb, tmp_path: Path
) -> None:
    for attempt in (1, 2):
        folder = tmp_path / "kernels" / f"attempt_{attempt}"
        folder.mkdir(parents=True)
        (folder / "1_allreduce_pytorch.py").write_bytes(GOOD + b"# again\n" * attempt)
    done = pkb("submit", "kernels", *ABOUT, "--visibility", "unlisted")
    assert done.status == 0, done.err
    first, other = Run.objects.select_related("kernel__problem").order_by("kernel__attempt")
    assert (first.kernel.attempt, other.kernel.attempt) == (1, 2)
    factory.finish(first, factory.make_report(first, Verdict.OUTPUT_MISMATCH))
    assert pkb("cancel", other.pk).out == f"{other.pk}: cancelled\n"
    done = pkb("watch", first.pk, other.pk, "--json")
    assert done.status == 1
    assert [each["status"] for each in json.loads(done.out)] == ["done", "cancelled"]
    assert "+# again" in pkb("diff", first.pk, other.pk).out.splitlines()
    kernels = [run.kernel.source_id for run in (first, other)]
    assert "GPT-5.5" in pkb("compare", *kernels).out
    number = first.kernel.submission_id
    assert pkb("rerun", number).out == "queued runs: 1\n"
    assert pkb("runs", "--mine", "--status", "queued").out.count("allreduce") == 1
    assert pkb("publish", number).status == 3
    done = pkb("withdraw", number, "--reason", "A bug.")
    assert done.out == f"submission {number}: unlisted, withdrawn\n"


@pytest.mark.django_db(transaction=True)
def test_a_refusal_says_what_is_wrong_and_how_to_mend_it(
    problem: object, pkb: Pkb, tmp_path: Path
) -> None:
    (tmp_path / "kernel.py").write_bytes(GOOD)
    wanted = ("--problem", "alreduce", "--backend", "pytorch")
    done = pkb("submit", "kernel.py", *ABOUT, *wanted)
    assert done.status == 3
    assert done.err.startswith("pkb: There is no problem 'alreduce'.\n  Did you mean allreduce?")
    done = pkb("submit", "kernel.py", *ABOUT, *wanted, "--json")
    assert json.loads(done.out)["error"]["code"] == "unknown_problem"
    assert Submission.objects.count() == 0


@pytest.mark.django_db(transaction=True)
def test_an_expired_token_hides_nothing_that_is_public(run: Run, pkb: Pkb) -> None:
    ApiToken.objects.update(expires_at=timezone.now())
    for word in ("problems", "board", "runs"):
        done = pkb(word)
        assert done.status == 0, done.err
        assert "refuses the token of PKB_TOKEN" in done.err
    done = pkb("runs", "--mine")
    assert done.status == 3
    assert "PKB_TOKEN" in done.err
    done = pkb("cancel", run.pk)
    assert done.status == 3
    assert "expired" in done.err
    assert "PKB_TOKEN" in done.err


@pytest.mark.django_db(transaction=True)
def test_what_the_site_knows_is_read(run: Run, pkb: Pkb) -> None:
    factory.finish(run, factory.make_report(run))
    assert "--- rank 0\ncompiled" in pkb("logs", run.pk).out
    assert pkb("bundle", run.pk, "-o", ".").out == f"pkb-run-{str(run.pk)[:8]}.zip\n"
    assert json.loads(pkb("report", run.pk).out)["verdict"] == "ok"
    (line,) = json.loads(pkb("runs", "--problem", 1, "--json").out)
    assert line["id"] == str(run.pk)
    problem = run.kernel.problem
    names = ("number", "slug", "title", "category_title")
    problem.payload |= {name: getattr(problem, name) for name in names}
    problem.save()
    assert re.search(r"^ +1 +allreduce +tensor", pkb("problems").out, re.M)
    shown = pkb("show", "1_allreduce").out
    assert "solution(tensor: Tensor)" in shown
    assert "best so far" in shown
    assert "Model One" in shown
    assert "def reference" in pkb("show", 1, "--reference").out
    asked = ("show", 1, "--prompt", "--dtype", "float32", "--backend")
    assert "## Backend: triton" in pkb(*asked, "triton").out
    assert pkb(*asked, "rust").status == 3
    assert "Model One" in pkb("board").out
    assert pkb("board", "--csv").out.startswith("place,")
    assert pkb("board", "--harness", "nobody").status == 3
    assert pkb("runs", "--verdict", "fine").status == 3


def test_the_file_is_the_same_wherever_it_is_packed(db: None) -> None:
    data, digest = client()
    assert packed(BASE_DIR) == data
    answer = Client().get("/pkb.pyz")
    assert answer.content == data
    assert answer["ETag"] == f'"{digest}"'
    again = Client().get("/pkb.pyz", headers={"If-None-Match": answer["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_the_form_says_how_to_fetch_it(db: None) -> None:
    page = Client().get("/submit").content.decode()
    assert "curl -O http://testserver/pkb.pyz\npython3 pkb.pyz login http://testserver" in page
    assert client()[1] in page


def test_each_shell_completes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "pkb.pyz"
    program.write_bytes(packed(BASE_DIR))
    ask = (
        f'eval "$({sys.executable} -I {program} completion bash)"; COMP_WORDS=(pkb submit --wo);'
        " COMP_CWORD=2; _pkb; echo ${COMPREPLY[@]}; COMP_WORDS=(pkb ca); COMP_CWORD=1; _pkb;"
        " echo ${COMPREPLY[@]}"
    )
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["--world-size", "cancel"]
    assert main(["completion", "zsh"]) == 0
    assert capsys.readouterr().out.startswith("autoload -U +X bashcompinit && bashcompinit\n")
    assert main(["completion", "fish"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "from cancel'" in line] == [
        "complete -c pkb -n '__fish_seen_subcommand_from cancel' -a '-h --help --json --site'"
    ]
