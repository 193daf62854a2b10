"""Offers the benchmark as a task of Inspect: `inspect eval pkb/kernels -T backend=triton`."""

from __future__ import annotations

from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState, generate

from ..judge import BaseJudge, Judge
from .setting import KernelSetting

NUMBERS = ("speedup", "speedup_low", "utilisation")


@task
def kernels(
    *,
    problems: str = "all",
    backend: str = "pytorch",
    hardware: str = "cpu",
    tier: str = "check",
    reward: str = "correct",
    site: str | None = None,
) -> Task:
    """Ask for a kernel of each problem, and score it by a site's judge.

    `problems` are slugs, numbers or categories with commas. The token is that of `pkb login`, or
    PKB_TOKEN.
    """
    setting = KernelSetting(backend, hardware, tier)
    samples = [
        Sample(input=row["prompt"], id=row["problem"], metadata={"problem": row["problem"]})
        for row in setting.rows(problems)
    ]
    return Task(
        dataset=MemoryDataset(samples, name="pkb"),
        solver=generate(),
        scorer=kernel_judge(Judge(site, reward=reward), setting),
    )


@scorer(metrics=[mean(), stderr()])
def kernel_judge(judge: BaseJudge, setting: KernelSetting | None = None) -> Scorer:
    """Score an answer by the reward of its kernel. Without a reward a sample has no score."""
    wanted = setting or KernelSetting()

    async def score(state: TaskState, target: Target) -> Score:
        item = wanted.item(state.metadata["problem"], state.output.completion)
        (result,) = await judge.batch([item])
        told: dict[str, Any] = {"verdict": result.verdict, "flags": list(result.flags)}
        told |= {name: result.report.get(name) for name in NUMBERS}
        if result.reward is None:
            return Score.unscored(explanation=result.feedback, metadata=told)
        return Score(
            value=result.reward, answer=item.source, explanation=result.feedback, metadata=told
        )

    return score
