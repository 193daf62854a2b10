"""`python -m evaluator serve`, as `pkb.LocalJudge` uses it, and jobs that share a secret."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from pathlib import Path

import pytest

from evaluator import serve
from evaluator.client.failures import Misused
from evaluator.client.items import Item, Result
from evaluator.client.local_judge import LocalJudge
from evaluator.messages.codec import encode
from evaluator.messages.job import Device, Dtype, Job, Placement
from tests.evaluator.judging import judged

ROOT = Path(__file__).resolve().parents[2]
HEAD = "import torch\nimport torch.distributed as dist\n\n\ndef solution(tensor):\n"
GOOD = f"{HEAD}    dist.all_reduce(total := tensor.clone())\n    return total\n"
WRONG = f"{HEAD}    return tensor\n"
SECRET = "0123456789abcdef" * 2


def test_jobs_with_one_secret_have_equal_inputs_and_others_have_not() -> None:
    jobs = [
        Job(problem="allreduce", source=GOOD, placement=Placement.SHARED, secret=secret)
        for secret in (SECRET, SECRET, None)
    ]
    reports = [judged(job) for job in jobs]
    shapes = [[(one.m, one.n, one.note) for one in report.trials] for report in reports]
    assert shapes[0] == shapes[1] != shapes[2]
    assert SECRET not in json.dumps(encode(reports[0]))
    assert SECRET not in repr(jobs[0])


@pytest.mark.parametrize("secret", ["", "0" * 31, "0" * 33, "g" * 32, "A" * 32])
def test_a_secret_has_one_form(secret: str) -> None:
    with pytest.raises(ValueError, match="32 hexadecimal digits"):
        Job(problem="allreduce", source=GOOD, secret=secret)


def test_a_line_says_what_is_not_usual_and_groups_share_a_secret() -> None:
    groups: OrderedDict[str, str] = OrderedDict()
    asked = {"problem": "allreduce", "source": GOOD}
    plain = serve.job_of(asked, groups)
    assert (plain.placement, plain.size, plain.secret) == (Placement.SHARED, "tiny", None)
    timed = serve.job_of({**asked, "tier": "time", "device": "cuda"}, groups)
    assert (timed.placement, timed.device) == (Placement.FULL, Device.CUDA)
    assert (timed.world_size, timed.dtype) == (4, Dtype.BFLOAT16)
    first, same, other = (
        serve.job_of({**asked, "group_id": name}, groups).secret for name in ("g", "g", "h")
    )
    assert first == same != other


def test_groups_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "MOST_GROUPS", 2)
    groups: OrderedDict[str, str] = OrderedDict()
    for name in "abc":
        serve.job_of({"problem": "allreduce", "source": GOOD, "group_id": name}, groups)
    assert list(groups) == ["b", "c"]


@pytest.mark.parametrize(
    "line", ["", "[]", "{}", '{"problem": "allreduce", "source": "x", "tier": "rank"}']
)
def test_a_line_that_is_no_job_is_refused(line: str) -> None:
    said: list[str] = []
    serve.serve([line], said.append)
    assert json.loads(said[0])["verdict"] == "refused"


def test_a_local_judge_needs_a_clone_and_devices_that_there_can_be(tmp_path: Path) -> None:
    with pytest.raises(Misused, match="no clone"):
        LocalJudge(clone=tmp_path)
    with pytest.raises(ValueError, match="neither cpu, cuda"):
        LocalJudge("cuda:0;rm", clone=ROOT)


@pytest.mark.slow
def test_a_local_judge_judges_on_this_host() -> None:
    items = [Item("allreduce", GOOD, "good"), Item("1", WRONG, "wrong"), Item("1", None, "none")]

    async def found() -> list[Result]:
        async with LocalJudge("cpu", clone=ROOT, reward="shaped") as judge:
            return [result async for result in judge.stream(items)]

    by_id = {result.id: result for result in asyncio.run(found())}
    assert {key: each.verdict for key, each in by_id.items()} == {
        "good": "ok",
        "wrong": "output_mismatch",
        "none": "missing_entry_point",
    }
    assert by_id["good"].reward == 0.5
    with LocalJudge("cpu", clone=ROOT, reward="fast") as judge:
        (timed,) = judge.batch_sync([Item("allreduce", GOOD, tier="time")])
    assert timed.speedup is not None
    assert timed.reward in (0, 1)
