"""What generation costs beside the model: `python benchmarks/generation.py`.

Method: a scripted server answers each ask at once with a kernel, over HTTP and through the real
client, for 87 problems x 1 sample with `--judge none`: the whole command, with its imports, and
`pack` and `replay`. Then the loop alone: a model in this process answers at once, and what a call
takes is all that the loop does beside it (prompt, digest, purse, events on the disk); for an agent
with a long conversation too. Medians of `--runs`.
"""

from __future__ import annotations

import argparse
import io
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from evaluator.generate.exchange import Ask, Reply
from evaluator.generate.options import catalogue, parser, plan_of
from evaluator.generate.plan import RunFiles, save_plan, save_prompt
from evaluator.generate.prompting import prompt_of
from evaluator.generate.running import Means, make, purse_of
from tests.evaluator.generate.scripted import FENCED, KERNEL, ScriptedModel, reply
from tests.evaluator.generate.server import said, serving

ROOT = Path(__file__).resolve().parent.parent
STEPS = 20


def main() -> None:
    """Print every time."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=3)
    runs = arguments.parse_args().runs
    for name, measure in (("commands", _commands), ("loop", _loop)):
        found = [measure() for _ in range(runs)]
        for key in found[0]:
            print(f"{name}, {key}: {statistics.median(one[key] for one in found):.3f}")


def _commands() -> dict[str, float]:
    """Return the seconds of each command."""
    with tempfile.TemporaryDirectory() as folder, serving(lambda body: said(FENCED)) as server:
        out = f"{folder}/out"
        words = ["--model", "m", "--base-url", server.url, "--judge", "none", "--parallel", "8"]
        found = {"run of 87 s": _seconds("run", out, *words)}
        assert len(server.asked) == 87
        return {**found, "pack s": _seconds("pack", out), "replay s": _seconds("replay", out)}


def _seconds(*words: str) -> float:
    began = time.perf_counter()
    command = [sys.executable, "-m", "evaluator.generate", *words]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return time.perf_counter() - began


def _loop() -> dict[str, float]:
    """Return the milliseconds of one call, by wall clock and by processor."""
    single = _call_ms(["--problems", "all"], lambda ask: reply(FENCED))
    agent = _call_ms(["--problems", "1", "--harness", "agentic", "--steps", str(STEPS)], _agent)
    return {
        "zero-shot ms a call": single[0],
        "zero-shot ms of a processor": single[1],
        f"agentic ms a call, {STEPS} steps": agent[0],
        f"agentic ms of a processor, {STEPS} steps": agent[1],
    }


def _agent(ask: Ask) -> Reply:
    """Write a kernel of some 8 KB each time."""
    source = KERNEL + f"# {len(ask.messages)} " + "x" * 8000
    return reply("", ("write", json.dumps({"source": source})))


def _call_ms(words: list[str], script: Callable[[Ask], Reply]) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        plan = plan_of(
            parser().parse_args(["run", "out", "--model", "m", "--judge", "none", *words])
        )
        place, problems = RunFiles(folder=Path(folder)), {one["slug"]: one for one in catalogue()}
        for target in plan.targets:
            save_prompt(place, target, prompt_of(plan, target, problems[target.slug]))
        save_plan(place, plan)
        model = ScriptedModel(script=script)
        means = Means(endpoint=model, judge=None, scrub=lambda value: value, asker_options={})
        began, used = time.perf_counter(), time.process_time()
        make(place, plan, means, purse_of(place, plan), io.StringIO())
        calls = len(model.asked)
        return 1e3 * (time.perf_counter() - began) / calls, 1e3 * (
            time.process_time() - used
        ) / calls


if __name__ == "__main__":
    main()
