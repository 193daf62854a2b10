"""From a model's address to a row of the board: the first lines of docs/generate.md, done.

A scripted model writes a wrong kernel, hears the judge, and mends it; this host judges what it
tried, and what was handed in.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as site_settings
from django.test import Client

from evaluator.evaluate import evaluate
from evaluator.generate import judging
from evaluator.generate.__main__ import main
from evaluator.judge.prefork import PreforkServer
from evaluator.messages.codec import encode
from evaluator.sandbox.hardware import environment
from leaderboard.kit.doorbells import Bell
from leaderboard.models import ApiToken, Run, Scope, Submission, WorkerHost
from leaderboard.runs import catalogue, evaluation
from tests.evaluator.generate.server import Body, said, serving
from tests.leaderboard import factory
from tests.leaderboard.running import claim

pytestmark = pytest.mark.django_db(transaction=True)
TUNED = str(Path(site_settings.BASE_DIR) / "tests/evaluator/tuned_judge.py")
Hurried = functools.partial(PreforkServer, program=(TUNED, "hurried"))
RIGHT = """import torch.distributed as dist


def solution(tensor):
    stack = tensor.new_zeros(dist.get_world_size(), *tensor.shape)
    dist.all_gather_into_tensor(stack.view(-1), tensor.contiguous().view(-1))
    return stack
"""
WRONG = "\n".join(line for line in RIGHT.splitlines() if "all_gather" not in line)
MODEL, SITE = "http://127.0.0.1:8080/v1", "https://leaderboard.example.org"


def _lines() -> Iterator[list[str]]:
    """The words of each line."""
    text = (Path(site_settings.BASE_DIR) / "docs/generate.md").read_text()
    (block,) = re.findall(r"\n\n((?:    .*\n)+)\n", text)[:1]
    yield from (shlex.split(one, comments=True) for one in block.replace("\\\n", "").splitlines())


def _model(body: Body) -> Any:
    """Write the next kernel as long as the last word of the judge is not `ok`."""
    results = [message["content"] for message in body["messages"] if message["role"] == "tool"]
    if results and "verdict: ok" in results[-1]:
        return said(None, calls=(("done", "{}"),))
    source = RIGHT if results else WRONG
    return said(None, calls=(("write", json.dumps({"source": source})), ("judge", "{}")))


@pytest.fixture
def site(live_server: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """A site with a problem, and a host that judges each run when its bell rings."""
    catalogue.sync(catalogue.read_file(catalogue.EXPORT)[1:2])

    own = environment()

    def ring(bells: Sequence[Bell]) -> None:
        with Hurried(warm=False) as prefork:
            for run_id, _ in bells:
                lease = claim(Run.objects.get(pk=run_id), own.host)
                report = evaluate(lease.job, None, prefork)
                WorkerHost.objects.update(isolation=report.isolation, hardware=own.hardware)
                evaluation.finish(run_id, lease.holding, encode(report))

    monkeypatch.setattr("leaderboard.submissions.queue.ring_later", ring)
    return str(live_server.url)


def _pkb(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the file that was fetched from the site."""
    owner = factory.make_user("owner")
    token = ApiToken.objects.issue(scope=Scope.SUBMIT, name="test", owner=owner)[1]
    home = {"XDG_CONFIG_HOME": str(Path.cwd()), "PATH": os.environ["PATH"]}
    command = [sys.executable, *words]
    return subprocess.run(
        command, env=home, input=token, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.slow
def test_the_ten_lines_lead_to_a_row_with_steps_tokens_and_cost(
    site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "PreforkServer", Hurried)
    monkeypatch.chdir(tmp_path)
    lines = list(_lines())
    assert len(lines) <= 10
    with serving(_model) as server:
        own = {MODEL: server.url, SITE: site, "2,13": "2"}
        for line in lines:
            words = [own.get(word, word) for word in line]
            match words:
                case [_, "-m", "evaluator.generate", "run", *rest]:
                    assert main(["run", *rest, "--price", "1,0.5,10"]) == 0
                case [_, "-m", "evaluator.generate", *rest]:
                    assert main(rest) == 0
                case ["curl", "-O", address]:
                    Path("pkb.pyz").write_bytes(Client().get(address.removeprefix(SITE)).content)
                case ["python3", *rest]:
                    done = _pkb(*rest)
                    wrong_step = rest[1] == "submit"
                    assert done.returncode == wrong_step, done
    runs = Run.objects.order_by("kernel__step")
    assert [run.verdict for run in runs] == ["output_mismatch", "ok"]
    assert "My model" in done.stdout
    (row,) = json.loads(_pkb("pkb.pyz", "board", "--json").stdout)["rows"]
    assert (row["correct"], row["solved_tokens"]) == (1, 3 * 50)
    assert row["solved_usd"] == pytest.approx(3 * (50 * 1 + 50 * 0.5 + 50 * 10) / 1e6)
    number = Submission.objects.get().pk
    page = Client().get(f"/submissions/{number}/2/attempt-1").text
    assert '<h2 id="diff">From step 1 to step 2' in page
    said_of_it = ("verdict: output_mismatch", "% of stack of rank 1", "verdict: ok")
    assert not [text for text in (*said_of_it, "95 % interval") if text not in page]
    assert main(["replay", "out"]) == 0
