"""A server that nobody here wrote, LiteLLM's proxy, is asked for kernels of every problem; what it
logs agrees to the token with the board.

It runs where `litellm` is installed, which is no requirement of this repository:
`PKB_LITELLM=<its environment>/bin/litellm pytest tests/leaderboard/test_foreign_server.py`.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from django.core.management import call_command
from django.test import Client

from evaluator.generate.__main__ import main
from evaluator.messages.report import Verdict
from leaderboard.models import Making, Run, Submission
from tests.leaderboard import factory

PROXY = os.environ.get("PKB_LITELLM") or shutil.which("litellm")
KEY = "sk-made-up-for-this-test"
STARTS_S = 120.0
KERNEL = "import torch\n\n\ndef solution(*given):\n    return given[0].clone()\n"
CONFIG = {
    "model_list": [
        {
            "model_name": "mock",
            "litellm_params": {
                "model": "openai/mock",
                "api_key": "none",
                "mock_response": f"Here it is.\n\n```python\n{KERNEL}```\n",
            },
        }
    ],
    "litellm_settings": {"callbacks": "usage_log.log"},
    "general_settings": {"master_key": KEY},
}
# LiteLLM's own way to log: it calls this for each answer, with the tokens that it bills.
LOGGER = """\
import json
import pathlib

from litellm.integrations.custom_logger import CustomLogger


class Log(CustomLogger):
    async def async_log_success_event(self, kwargs, response_obj, start_time, end_time):
        told = kwargs["standard_logging_object"]
        counts = {name: told[name] for name in ("prompt_tokens", "completion_tokens")}
        with pathlib.Path(__file__).with_name("usage.jsonl").open("a") as file:
            file.write(json.dumps(counts) + "\\n")


log = Log()
"""

pytestmark = [
    pytest.mark.framework,
    pytest.mark.skipif(PROXY is None, reason="needs LiteLLM's proxy: set PKB_LITELLM"),
    pytest.mark.slow,
    pytest.mark.django_db,
]


class Proxy(NamedTuple):
    """Holds the address of the proxy, and the file in which it logs."""

    url: str
    log: Path

    def logged(self, answers: int) -> tuple[int, int]:
        """The tokens of input and output that it logged, once it has logged so many answers."""
        until_s = time.monotonic() + 30
        lines: list[str] = []
        while len(lines) < answers and time.monotonic() < until_s:
            lines = self.log.read_text().splitlines() if self.log.exists() else []
            time.sleep(0.2)
        assert len(lines) == answers
        told = [json.loads(line) for line in lines]
        self.log.unlink()
        given, made = (
            sum(one[name] for one in told) for name in ("prompt_tokens", "completion_tokens")
        )
        return given, made


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp("proxy")
    (folder / "config.yaml").write_text(json.dumps(CONFIG))  # JSON is YAML, too
    (folder / "usage_log.py").write_text(LOGGER)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(PROXY), "--config", "config.yaml", "--host", "127.0.0.1", "--port", str(port)]
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    with (folder / "proxy.log").open("w") as out:
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=out, stderr=out)
    try:
        _wait(f"http://127.0.0.1:{port}/health/liveliness", process, folder / "proxy.log")
        yield Proxy(f"http://127.0.0.1:{port}/v1", folder / "usage.jsonl")
    finally:
        process.terminate()
        process.wait(30)


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until_s = time.monotonic() + STARTS_S
    while time.monotonic() < until_s and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    pytest.fail(f"the proxy does not start: {log.read_text()[-2000:]}")


@pytest.mark.parametrize(
    ("harness", "words", "answers"),
    [
        ("repeated", ("--samples", "2"), 2 * 87),
        # The same kernel three times in a row ends an attempt.
        ("agentic", ("--samples", "2", "--steps", "4"), 2 * 3 * 87),
    ],
)
def test_its_log_agrees_with_the_board(
    *,
    proxy: Proxy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    harness: str,
    words: tuple[str, ...],
    answers: int,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    # Of streamed answers it counts the tokens; to others it gives the same number.
    asked = ("--problems", "all", "--harness", harness, "--judge", "none", "--stream")
    out = tmp_path / "out"
    assert main(["run", str(out), "--model", "mock", "--base-url", proxy.url, *asked, *words]) == 0
    assert main(["pack", str(out)]) == 0
    given, made = proxy.logged(answers)
    assert given > 500 * answers

    call_command("sync_problems", verbosity=0)
    archive = tmp_path / "out.tar.gz"
    about = ("--model=Mock", f"--harness={harness}", "--world-size=4")
    call_command("import_submission", archive, *about, verbosity=0)
    submission = Submission.objects.get()
    last = [_last(submission, problem, attempt) for problem in range(1, 88) for attempt in (1, 2)]
    assert sum(one.input_tokens or 0 for one in last) == given
    assert sum(one.output_tokens or 0 for one in last) == made
    _judge(submission)
    rows = Client().get("/api/v1/leaderboard").json()["rows"]
    (row,) = [one for one in rows if one["submission"] == submission.pk]
    scored = [one for one in last if one.kernel.problem.scored]
    assert row["solved_tokens"] == sum(one.output_tokens or 0 for one in scored)


def _last(submission: Submission, problem: int, attempt: int) -> Making:
    """What an attempt had used at its end."""
    steps = Making.objects.filter(kernel__submission=submission, kernel__problem__number=problem)
    found = steps.filter(kernel__attempt=attempt).select_related("kernel__problem")
    return found.order_by("kernel__step")[len(found) - 1]


def _judge(submission: Submission) -> None:
    """Have all judged: problem 1 is solved, no other."""
    for run in Run.objects.filter(kernel__submission=submission).select_related("kernel__problem"):
        verdict = Verdict.OK if run.kernel.problem.number == 1 else Verdict.OUTPUT_MISMATCH
        factory.finish(run, factory.make_report(run, verdict))
