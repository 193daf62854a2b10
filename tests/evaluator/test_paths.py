"""What a report shows of its host's folders: which file it was, and nothing of where it lies."""

from __future__ import annotations

import os
import sysconfig
import threading
import time
from pathlib import Path

import pytest

from evaluator.diagnosis.stacks import stacks
from evaluator.judge.findings import Findings
from evaluator.messages.faults import Fault
from evaluator.messages.job import Job
from evaluator.messages.report import Environment, Isolation, Phase, RankLog, Verdict
from evaluator.sandbox.paths import Names, _own, named, neutral
from evaluator.sandbox.sandbox import REPOSITORY
from evaluator.worker.site import Lease, Site

HOME = Path("/var/people/ann")
VENV = HOME / "pkb/.venv"
OWN = named(
    repository=HOME / "pkb",
    packages=[VENV / "lib/python3.12/site-packages"],
    library=[HOME / ".local/python-3.12/lib/python3.12"],
    prefixes=[VENV, HOME / ".local/python-3.12"],
    home=HOME,
)
IN_A_CONTAINER = named(
    repository=Path("/app"),
    packages=[Path("/usr/lib/python3/dist-packages")],
    library=[Path("/usr/lib/python3.12")],
    prefixes=[Path("/usr")],
    home=Path("/keeper"),
)


@pytest.mark.parametrize(
    ("names", "line", "shown"),
    [
        (OWN, 'File "/var/people/ann/pkb/evaluator/a.py", line 9', 'File "evaluator/a.py", line 9'),
        (OWN, "/var/people/ann/pkb/problems/other/b.py", "problems/other/b.py"),
        (OWN, f"{VENV}/lib/python3.12/site-packages/torch/nn.py", "site-packages/torch/nn.py"),
        (OWN, "/var/people/ann/.local/python-3.12/lib/python3.12/re.py", "lib/python3.12/re.py"),
        (OWN, f"{VENV}/bin/ninja -I{VENV}/include", "python/bin/ninja -Ipython/include") ,
        (OWN, f"{VENV}/bin/ninja: failed", "python/bin/ninja: failed"),
        (OWN, "/var/people/ann/thunderkittens/kittens.cuh:3:1", "~/thunderkittens/kittens.cuh:3:1"),
        (OWN, "/var/people/ann/pkb/state/judge.log", "state/judge.log"),
        (OWN, "/tmp/rank0/submission.py", "/tmp/rank0/submission.py"),
        (OWN, "/var/people/ann2/x /usr/local/cuda/x", "/var/people/ann2/x /usr/local/cuda/x"),
        (IN_A_CONTAINER, "/app/evaluator/runner.py", "evaluator/runner.py"),
        (IN_A_CONTAINER, "/usr/lib/python3.12/re.py", "lib/python3.12/re.py"),
        (IN_A_CONTAINER, "/tmp/app/x /usr/a.h /keeper/x", "/tmp/app/x /usr/a.h /keeper/x"),
    ],
)  # fmt: skip
def test_a_path_tells_which_file_and_not_whose(names: Names, line: str, shown: str) -> None:
    assert neutral(line, names) == shown


def test_this_hosts_own_paths_are_known() -> None:
    packages = sysconfig.get_path("purelib")
    text = f'File "{REPOSITORY}/evaluator/runner.py"\n{packages}/torch/x.py\n{threading.__file__}'
    runner, torch, library = neutral(text).splitlines()
    assert (runner, torch) == ('File "evaluator/runner.py"', "site-packages/torch/x.py")
    assert library == f"lib/{Path(threading.__file__).parent.name}/threading.py"


def test_a_user_without_a_home_judges_like_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container whose user has a number only."""
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(os, "getuid", lambda: 1 << 30)
    with pytest.raises(RuntimeError):
        Path.home()
    _own.cache_clear()
    assert neutral(f"{REPOSITORY}/evaluator/runner.py") == "evaluator/runner.py"
    _own.cache_clear()


def test_a_folder_behind_a_link_is_known_by_both_names(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    names = named(repository=link, packages=[], library=[], prefixes=[], home=tmp_path)
    for folder in (real, link):
        assert neutral(f"{folder}/evaluator/x.py", names) == "evaluator/x.py"


def test_a_hostile_text_takes_no_longer_than_its_length() -> None:
    hostile = "/var/people/ann/pkb" * (1 << 16)
    before = time.perf_counter()
    neutral(hostile, OWN)
    assert time.perf_counter() - before < 1.0


def test_what_a_worker_says_of_its_own_fault_is_neutral_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[dict[str, object]] = []
    monkeypatch.setattr(Site, "_retried", lambda *told: sent.append(told[-1]))
    job = Job(problem="allreduce", source="def solution(): ...")
    lease = Lease(run_id="r", token="t", heartbeat_s=1.0, job=job)
    error = f'ended without a report: File "{REPOSITORY}/evaluator/judge.py"'
    Site(url="http://site", token="t").fail(lease, error)
    assert sent == [{"error": 'ended without a report: File "evaluator/judge.py"'}]


def test_a_report_is_diagnosed_first_and_then_shows_no_folder_of_its_host() -> None:
    """The stacks of a rank that hangs are known by the folders that their files lie in."""
    torch = f"{sysconfig.get_path('purelib')}/torch/distributed/distributed_c10d.py"
    text = (
        "Current thread 0x00007f1 (most recent call first):\n"
        f'  File "{torch}", line 3 in all_reduce\n'
        '  File "/tmp/rank0/submission.py", line 7 in solution\n'
        f'  File "{REPOSITORY}/evaluator/runner.py", line 40 in run_rank\n'
    )
    log = RankLog(rank=0, text=text, dropped_bytes=3)
    fault = Fault(Verdict.TIMEOUT, "timeout", f"no answer in {REPOSITORY}/evaluator/x", ranks=[0])
    known = {
        **{"problem": "allreduce", "problem_digest": "d", "isolation": Isolation.BWRAP},
        "environment": Environment(hardware="cpu", host="h", versions={}),
    }
    findings = Findings(logs=(log,), phase=Phase.VERIFY)
    report = findings.report(Job(problem="allreduce", source="def solution(): ..."), fault, known)
    assert stacks([log])[0].waits_in == "all_reduce"
    assert report.evidence == "rank 0 waits in all_reduce, submission.py line 7 (solution)"
    assert report.message == f"no answer in evaluator/x: {report.evidence}"
    (shown,) = report.logs
    assert (shown.rank, shown.dropped_bytes) == (0, 3)
    assert '  File "evaluator/runner.py", line 40 in run_rank\n' in shown.text
    assert '  File "site-packages/torch/distributed/distributed_c10d.py", line 3' in shown.text
    assert str(REPOSITORY) not in shown.text
