"""Serves the benchmark as an environment of OpenEnv: a reset asks for a kernel, a step judges one.

app = make_app(pkb.Judge(site, token))      # uvicorn module:app
"""

from __future__ import annotations

import random
from typing import Any
from uuid import uuid4

from fastapi import FastAPI
from openenv.core.env_server import Action, Environment, Observation, State, create_app

from ..judge import BaseJudge
from .setting import KernelSetting, chosen

MOST_STEPS = 8


class KernelAction(Action):
    """Holds a model's answer: text with a fenced block, or a kernel's source alone."""

    answer: str


class KernelObservation(Observation):
    """Holds the prompt, and what the judge said of the last answer. `reward` is None where there is
    none."""

    problem: str
    prompt: str = ""
    verdict: str | None = None
    feedback: str = ""
    speedup: float | None = None


class KernelEnvironment(Environment[KernelAction, KernelObservation, State]):
    """Asks for a kernel of one problem an episode. The episode ends with a correct kernel, or after
    `most_steps` answers."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(
        self, judge: BaseJudge, problems: str, setting: KernelSetting, most_steps: int = MOST_STEPS
    ) -> None:
        super().__init__()
        self._judge, self._setting, self._most = judge, setting, most_steps
        self._problems = {one.slug: one for one in chosen(problems)}
        self._problem, self._state = next(iter(self._problems)), State()

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any
    ) -> KernelObservation:
        """Begin an episode of the problem that `problem` names, else of one that the seed draws."""
        drawn = random.Random(seed).choice(list(self._problems))
        self._problem = str(kwargs.get("problem") or drawn)
        self._state = State(episode_id=episode_id or uuid4().hex, step_count=0)
        prompt = self._setting.prompt(self._problems[self._problem])
        return KernelObservation(problem=self._problem, prompt=prompt)

    def step(
        self, action: KernelAction, timeout_s: float | None = None, **kwargs: Any
    ) -> KernelObservation:
        """Judge an answer."""
        self._state.step_count += 1
        (result,) = self._judge.batch_sync([self._setting.item(self._problem, action.answer)])
        return KernelObservation(
            problem=self._problem,
            verdict=result.verdict,
            feedback=result.feedback,
            speedup=result.speedup,
            reward=result.reward,
            done=result.verdict == "ok" or self._state.step_count >= self._most,
        )

    @property
    def state(self) -> State:
        """Return the episode's id and its steps."""
        return self._state


def make_app(
    judge: BaseJudge,
    problems: str = "all",
    setting: KernelSetting | None = None,
    sessions: int = 16,
) -> FastAPI:
    """Return the server's application; `sessions` may be open at a time."""
    wanted = setting or KernelSetting()

    def environment() -> KernelEnvironment:
        return KernelEnvironment(judge, problems, wanted)

    app: FastAPI = create_app(
        environment,
        KernelAction,
        KernelObservation,
        env_name="pkb",
        max_concurrent_envs=sessions,
        show_default_tab=False,
    )
    return app
