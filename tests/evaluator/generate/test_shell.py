"""The shell of an agent: what a command finds, what it cannot reach, and what stops it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator.evaluate import Cancelled
from evaluator.generate import shell
from evaluator.generate.__main__ import main
from evaluator.generate.packing import archive, replayed
from evaluator.generate.plan import attempts
from evaluator.generate.shell import MOST_COMMAND_BYTES, OUTPUT_BYTES, SandboxedShell
from evaluator.messages.faults import EvaluatorError
from evaluator.sandbox import sandbox
from tests.evaluator.generate.scripted import (
    KERNEL,
    ScriptedJudge,
    ScriptedModel,
    ScriptedShell,
    go_on,
    lay_out,
    plan,
    reply,
)

needs_bwrap = pytest.mark.skipif(sandbox.find_bwrap() is None, reason="bubblewrap is not installed")
WORDS = ("--harness", "agentic", "--problems", "1", "--shell")
Run = Callable[..., str]


@pytest.fixture
def run() -> Run:
    """What a command shows, under limits that it may meet within a test."""

    def shown(command: str, source: str = KERNEL, timeout_s: float = 20.0) -> str:
        few = replace(shell.LIMITS, memory_bytes=256 << 20, processes=32, scratch_bytes=4 << 20)
        with ThreadPoolExecutor(max_workers=1) as thread:
            own = SandboxedShell(
                is_over=lambda: False, thread=thread, limits=few, timeout_s=timeout_s
            )
            return own.run(command, source)[0]

    return shown


@needs_bwrap
def test_a_command_finds_the_last_step_python_and_nothing_of_earlier_commands(run: Run) -> None:
    assert (
        run("pwd; ls; cat kernel.py; touch more")
        == f"exit status 0\n/tmp/work\nkernel.py\n{KERNEL}"
    )
    assert run("ls; exit 3", source="") == "exit status 3\nkernel.py\n"
    assert run("python -c 'import kernel'", source="print(__name__)") == "exit status 0\nkernel\n"


@needs_bwrap
def test_neither_host_nor_network_nor_judge_is_in_reach(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each line would print `reached`."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-host")
    (tmp_path / "run.json").write_text("{}")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        attempts_to_reach = (
            f"test -e {tmp_path}/run.json",
            "test -e /etc/passwd -o -e /etc/shadow -o -e /var/lib",
            *(f"test -e {sandbox.REPOSITORY}/{name}" for name in ("evaluator/judge", "problems")),
            f"test -e {sandbox.REPOSITORY}/fixtures -o -e {sandbox.REPOSITORY}/.git",
            "python -c 'import evaluator.judge'",
            "python -c 'import problems'",
            "python -c 'import utils.cuda_helpers'",
            "env | grep -e sk-of -e PKB -e SECRET",
            f"test -e /proc/{os.getpid()}/environ",
            f"python -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 2)'",
            "python -c 'import socket; socket.getaddrinfo(\"example.org\", 80)'",
            "touch /usr/bin/pkb-was-here",
            "ls /dev | grep -e nvidia -e kvm -e sda",
            "cat /sys/fs/cgroup/cgroup.procs",
            "unshare -U true",
            "test $(id -u) = 0",
        )
        printed = run(
            "\n".join(
                f"{one} >/dev/null 2>&1 && echo 'reached: {at}'"
                for at, one in enumerate(attempts_to_reach)
            )
            + "\necho all tried"
        )
    assert printed == "exit status 0\nall tried\n"


@needs_bwrap
def test_time_output_memory_processes_and_scratch_are_bounded(run: Run) -> None:
    began = time.monotonic()
    assert run("echo begun; sleep 60 & sleep 60", timeout_s=0.5) == "stopped after 0 s\nbegun\n"
    assert time.monotonic() - began < 15
    flood = run("yes '\x1b[2J\u202e' | head -c 3000000")
    assert len(flood) < OUTPUT_BYTES + 200
    assert "not kept" in flood
    assert not {"\x1b", "\u202e"} & set(flood)
    assert "memory" in run("python -c 'bytearray(1 << 30)'").splitlines()[0]
    many = "import os, time; [os.fork() or time.sleep(1) for _ in range(90)]"
    assert "processes" in run(f'python -c "{many}"').splitlines()[0]
    assert "exit status 0" not in run(
        "head -c 9000000 /dev/zero > a && head -c 9000000 /dev/zero > b"
    )


@needs_bwrap
def test_a_command_ends_with_the_run() -> None:
    ends_s = time.monotonic() + 0.3
    with ThreadPoolExecutor(max_workers=1) as thread:
        own = SandboxedShell(is_over=lambda: time.monotonic() > ends_s, thread=thread)
        with pytest.raises(Cancelled):
            own.run("sleep 60", KERNEL)
        with pytest.raises(Cancelled):
            own.run("true", KERNEL)


def test_without_a_sandbox_nothing_runs(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("PKB_BWRAP", raising=False)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    words = ["--model", "m", "--base-url", "http://127.0.0.1:9/v1"]
    assert main(["run", str(tmp_path / "out"), *WORDS, *words]) == 2
    told = capsys.readouterr().err
    assert "--shell needs a sandbox, and this host has none: bubblewrap is not installed" in told
    assert not (tmp_path / "out").exists()
    with pytest.raises(EvaluatorError, match="no command runs"):
        run(f"touch {tmp_path}/ran")
    assert not list(tmp_path.iterdir())


def test_what_a_command_showed_is_recorded_and_never_run_again(tmp_path: Path) -> None:
    own, ran = plan(*WORDS), ScriptedShell()
    place = lay_out(tmp_path / "out", own)
    long = json.dumps({"command": "x" * (MOST_COMMAND_BYTES + 1)})
    answers = iter(
        [
            reply("", ("shell", '{"command": "ls"}'), ("shell", long)),
            reply("", ("write", json.dumps({"source": KERNEL})), ("shell", '{"command": "ls"}')),
            reply("", ("shell", '{"command": "ls"}'), ("done", "{}")),
        ]
    )
    model = ScriptedModel(script=lambda _: next(answers))
    go_on(place, own, model, ScriptedJudge(), shell=ran)
    assert ran.ran == [("ls", ""), ("ls", KERNEL), ("ls", KERNEL)]
    ended = replayed(place, own, *next(attempts(own)))
    assert ended is not None
    results = [message.text for message in ended.messages if message.role == "tool"]
    assert results[:2] == ["exit status 0\nls 1", "error: a command has no NUL and at most 32 KiB"]
    assert results[4] == "exit status 0\nls 3"
    assert ended.totals.wall_s == 3 * 1.0 + 3 * 3.0
    assert archive(place, own) == archive(place, own)
    assert own.recipe == "agentic-shell"
    assert own.recipe_sha256 != plan(*WORDS[:-1]).recipe_sha256
