"""Gives TRL and verl a reward of kernels, by a judge; needs neither to be imported.

TRL: `GRPOTrainer(reward_funcs=[trl_reward(judge)], ...)`, with a column `problem` in the dataset.
verl: `custom_reward_function.path` names a file that says `compute_score = verl_score(judge)`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from ..judge import BaseJudge
from .setting import KernelSetting, said

NO_SETTING = KernelSetting()


def dataset_rows(
    problems: str = "all", setting: KernelSetting = NO_SETTING
) -> list[dict[str, Any]]:
    """Return rows for `datasets.Dataset.from_list`: `prompt` as messages, and `problem`."""
    return [
        {"prompt": [{"role": "user", "content": row["prompt"]}], "problem": row["problem"]}
        for row in setting.rows(problems)
    ]


def trl_reward(
    judge: BaseJudge, setting: KernelSetting = NO_SETTING
) -> Callable[..., list[float | None]]:
    """Return a reward function of TRL. None where there is no reward, which TRL leaves out.

    Completions of one prompt in a call are one group: they are judged on equal inputs.
    """
    calls = 0

    def pkb_reward(
        prompts: Sequence[Any], completions: Sequence[Any], problem: Sequence[str], **_: Any
    ) -> list[float | None]:
        nonlocal calls
        calls += 1
        items = [
            setting.item(slug, said(completion), _group(judge, calls, slug, prompt))
            for prompt, completion, slug in zip(prompts, completions, problem)
        ]
        return [result.reward for result in judge.batch_sync(items)]

    return pkb_reward


def verl_score(
    judge: BaseJudge, setting: KernelSetting = NO_SETTING, *, without_reward: float = 0.0
) -> Callable[..., dict[str, Any]]:
    """Return a `compute_score` of verl; `ground_truth` is the problem's slug or number.

    verl takes no None: `without_reward` stands for it, and `is_judged` says so in the metrics.
    """

    def compute_score(
        data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None
    ) -> dict[str, Any]:
        (result,) = judge.batch_sync([setting.item(str(ground_truth), solution_str)])
        has_reward = result.reward is not None
        score = result.reward if has_reward else without_reward
        return {
            "score": score,
            "is_judged": has_reward,
            "verdict": result.verdict,
            "speedup": result.speedup or 0.0,
        }

    return compute_score


def _group(judge: BaseJudge, call: int, slug: str, prompt: Any) -> str:
    """Return a name for the completions of one prompt in one call, which no other call has."""
    told = f"{judge.session} {call} {slug} {prompt}"
    return hashlib.sha256(told.encode(errors="replace")).hexdigest()[:40]
