"""The adapters, each by the example of its docs, with a scripted model and the real framework."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.evaluator.client.wheel import ROOT, installed

PAGE = (ROOT / "docs" / "frameworks.md").read_text()
PRELUDE = (Path(__file__).parent / "scripted_judge.py").read_text()
ADAPTERS = sorted((ROOT / "evaluator" / "client" / "integrations").glob("*.py"))
# Of each heading the package that it needs, what stands before and after the example, and what that
# prints.
# Inspect counts the scripted model's tokens by a file that it would fetch.
MODEL = """
import tiktoken
class Words:
    def encode(self, text, **_):
        return text.split()
tiktoken.get_encoding = lambda _: Words()
from inspect_ai.model import ModelOutput, get_model
model = get_model("mockllm/model", custom_outputs=[
    ModelOutput.from_content("mockllm/model", answer)])
"""
UNSCORED = """
import math
model = get_model("mockllm/model", custom_outputs=[
    ModelOutput.from_content("mockllm/model", answer.replace("dist.all_reduce", "ours"))])
(log,) = eval(task, model=model, display="none", log_dir=logs)
print(log.status, math.isnan(next(iter(log.samples[0].scores.values())).value))
"""
SCORED = """
import asyncio
from pkb.client.integrations.verifiers_taskset import NoReward
(task,) = KernelTaskset(KernelTasksetConfig(problems="allreduce"))
def traced(said):
    return vf.Trace.model_construct(root_reply=said, info={}, rewards={}, metrics={}, nodes=[])
trace = traced(answer)
asyncio.run(task.score(trace))
print(trace.reward, trace.info["pkb"]["verdict"])
try:
    asyncio.run(task.score(traced(answer.replace("dist.all_reduce", "ours"))))
except Exception as error:
    print(type(error).__name__, "infra_error" in str(error))
"""
OURS = """
ours = answer.replace("dist.all_reduce", "ours")
with pkb.Judge(site, token, reward="shaped") as judge:
    print(trl_reward(judge)([rows[0]["prompt"]], [[{"content": ours}]], problem=["allreduce"]))
    print(verl_score(judge)("pkb", ours, "allreduce")["is_judged"])
"""
EXAMPLES = {
    "Inspect": ("inspect_ai", MODEL, UNSCORED, "success 1.0\nsuccess True\n"),
    "verifiers": (
        *("verifiers.v1", "", SCORED),
        "allreduce True\nallgather True\nbroadcast True\n0.5 ok\nNoReward True\n",
    ),
    "OpenEnv": ("openenv.core", "", "", "allreduce\n1.0\n"),
    "TRL and verl": ("json", "", OURS, "[0.5, 0.1]\n0.5\n[None]\nFalse\n"),
}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree, unpacked."""
    return installed(tmp_path_factory.mktemp("package"))


def _example(heading: str) -> str:
    section = PAGE.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    (found,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    return str(found)


@pytest.mark.framework
@pytest.mark.parametrize("heading", EXAMPLES)
def test_the_example_of_the_docs_does_what_it_says(
    heading: str, package: Path, tmp_path: Path
) -> None:
    needs, before, after, expected = EXAMPLES[heading]
    if importlib.util.find_spec(needs.partition(".")[0]) is None:
        pytest.skip(f"needs {needs}")
    program = tmp_path / "example.py"
    program.write_text(f"{PRELUDE}\n{before}\n{_example(heading)}\n{after}")
    env = {**os.environ, "PYTHONPATH": str(package), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout == expected


@pytest.mark.parametrize("heading", EXAMPLES)
def test_an_example_has_about_ten_lines(heading: str) -> None:
    lines = [line for line in _example(heading).splitlines() if line.strip()]
    assert len(lines) <= 12


@pytest.mark.parametrize("path", ADAPTERS, ids=lambda path: path.stem)
def test_an_adapter_is_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 120
