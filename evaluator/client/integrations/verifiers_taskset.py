"""Offers the benchmark as a taskset of `verifiers`, for prime-rl and its like.

A module of your own makes it known by a name, here `my_kernels`, to `eval my_kernels`:

    from pkb.client.integrations.verifiers_taskset import KernelTaskset
    __all__ = ["KernelTaskset"]
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import verifiers.v1 as vf

from ..judge import BaseJudge, Judge
from .setting import KernelSetting


class NoReward(vf.TaskError):
    """Says that a rollout has no reward, for no fault of its kernel: it is an error, and not 0."""


class KernelTaskConfig(vf.TaskConfig):
    """Says how kernels are judged; the token is that of `pkb login`, or PKB_TOKEN."""

    site: str | None = None
    reward: str = "shaped"
    backend: str = "pytorch"
    hardware: str = "cpu"
    tier: str = "check"
    size: str | None = None
    dtype: str | None = None
    world_size: int | None = None

    @property
    def setting(self) -> KernelSetting:
        """Return the setting of prompts and judgements."""
        ranks, size, dtype = self.world_size, self.size, self.dtype
        return KernelSetting(self.backend, self.hardware, self.tier, ranks, size, dtype)


class KernelTasksetConfig(vf.TasksetConfig):
    """Says which problems are asked: slugs, numbers or categories with commas."""

    problems: str = "all"
    task: KernelTaskConfig = KernelTaskConfig()


class KernelData(vf.TaskData):
    """Holds a problem's slug, and its prompt."""

    problem: str


class KernelTask(vf.Task[KernelData, vf.State, KernelTaskConfig]):
    """Asks for one kernel, and rewards it by the judge."""

    def judge(self) -> BaseJudge:
        """Return the judge of this task's site; tasks of one setting share it."""
        return judge_of(self.config.site, self.config.reward)

    @vf.reward
    async def kernel(self, trace: vf.Trace) -> float:
        """Return the reward of the kernel in the last reply. Raises NoReward."""
        item = self.config.setting.item(self.data.problem, trace.last_reply)
        (result,) = await self.judge().batch([item])
        trace.info["pkb"] = {"verdict": result.verdict, "feedback": result.feedback}
        if result.reward is None:
            raise NoReward(f"{result.verdict}: {result.feedback}")
        return result.reward


class KernelTaskset(vf.Taskset[KernelTask, KernelTasksetConfig]):
    """Loads a task of each problem that the setting can ask."""

    def load(self) -> Iterator[KernelTask]:
        """Yield the tasks, in the order of the problems' numbers."""
        config = self.config.task
        for row in config.setting.rows(self.config.problems):
            data = KernelData(id=row["problem"], name=row["problem"], **row)
            yield KernelTask(data, config)


@cache
def judge_of(site: str | None, reward: str) -> BaseJudge:
    """Return the judge of a site, made once."""
    return Judge(site, reward=reward)
