"""A toy GRPO loop, run as a program that has the package `pkb` and nothing else.

A policy chooses among scripted answers. Each step draws a group of them for one problem, has it
judged on equal inputs, and moves the policy by the group's advantages. Prints a line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import sys

import pkb

GROUP, RATE = 4, 0.5
HEAD = "import torch\nimport torch.distributed as dist\n\n\ndef solution(tensor):\n"
ANSWERS = (
    "I do not know.",
    f"```python\n{HEAD}    return tensor * dist.get_world_size()\n```",
    f"```python\n{HEAD}    dist.all_reduce(total := tensor.clone())\n    return total\n```",
)


async def train(site: str, token: str, steps: int) -> dict[str, object]:
    """Train for some steps; return what became of the policy."""
    chooser, logits = random.Random(7), [0.0] * len(ANSWERS)
    prompt = pkb.Benchmark()["allreduce"].prompt(backend="pytorch", hardware="cpu")
    assert "solution" in prompt
    rewards: list[float] = []
    async with pkb.Judge(site, token, reward="shaped") as judge:
        for step in range(steps):
            weights = [math.exp(each) for each in logits]
            drawn = chooser.choices(range(len(ANSWERS)), weights, k=GROUP)
            source = {one: pkb.extract(ANSWERS[one]) for one in set(drawn)}
            # What is drawn twice is judged once: a group has equal inputs.
            items = [
                pkb.Item("allreduce", source[one], f"{step}-{one}", group_id=f"step-{step}")
                for one in sorted(source)
            ]
            results = {result.id: result async for result in judge.stream(items)}
            found = {one: results[f"{step}-{one}"].reward for one in source}
            known = [reward for one in drawn if (reward := found[one]) is not None]
            if not known:
                continue
            mean = sum(known) / len(known)
            rewards.append(mean)
            for one in drawn:
                reward = found[one]
                if reward is not None:
                    _reinforce(logits, weights, one, RATE * (reward - mean))
    total = sum(math.exp(each) for each in logits)
    chances = [math.exp(each) / total for each in logits]
    return {"steps": len(rewards), "chances": chances, "torch": "torch" in sys.modules}


def _reinforce(logits: list[float], weights: list[float], chosen: int, advantage: float) -> None:
    """Move the policy towards an answer, by the gradient of its log probability."""
    for one in range(len(logits)):
        logits[one] += advantage * ((one == chosen) - weights[one] / sum(weights))


if __name__ == "__main__":
    found = asyncio.run(train(sys.argv[1], sys.argv[2], int(sys.argv[3])))
    sys.stdout.write(json.dumps(found))
