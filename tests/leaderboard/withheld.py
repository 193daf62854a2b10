"""What tests of withheld sources share: a submission that withholds, and who finds its text."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from typing import Any

from evaluator.messages.profile import (
    EventKind,
    Evidence,
    Mechanism,
    RankTimeline,
    Tag,
    TimelineEvent,
)
from evaluator.messages.report import Phase, RankLog, Verdict
from leaderboard.models import Decline, Run, Submission
from tests.leaderboard import factory
from tests.leaderboard.attempt_files import AGENTIC, LINE, MANIFEST, TRANSCRIPT, zipped
from tests.leaderboard.uploads import Send, make_tar

MARK = "zqsentinel9"
SOURCE = f"def solution(tensor):\n    return tensor  # {MARK}\n"
OTHER = f"def solution(tensor):\n    return tensor + 0  # {MARK} again\n"
# A range that the source names, its own kernel, and a library's that has a type of its own.
NAMED = (
    (f"step of {MARK}", EventKind.COMPUTE, 3.0),
    (f"void {MARK}_reduce<8>(float*)", EventKind.KERNEL, 5.5),
    (f"void at::native::kernel<{MARK}>(int)", EventKind.COMPUTE, 2.0),
    (f"void {MARK}_reduce<8>(float*)", EventKind.KERNEL, 4.25),
    (f"ncclDevKernel_{MARK}", EventKind.COMMUNICATION, 7.0),
)


def timeline(rank: int) -> RankTimeline:
    return RankTimeline(
        rank=rank,
        device="cuda",
        origin_ns=0,
        events=tuple(
            TimelineEvent(name=name, kind=kind, start_us=10.0 * at, duration_us=us, stream=at % 2)
            for at, (name, kind, us) in enumerate(NAMED)
        ),
        dropped_events=0,
        graph_launches=0,
        **{"compute_us": 5.0, "communication_us": 7.0, "overlap_us": 0.0},
        **{"unknown_us": 9.75, "idle_us": 25.25, "span_us": 47.0},
    )


QUOTED: dict[str, Any] = {
    "message": f"rank 0: error in {MARK}",
    "evidence": f"kernel.cu(3): error: {MARK} is undefined",
    "logs": (RankLog(rank=0, text=f"Traceback\n  {MARK}\n"),),
    "flag_lines": {"static:side-stream": (1,)},
    "flags": ("static:side-stream",),
    "mechanisms": (
        Mechanism(tag=Tag.NCCL, evidence=Evidence.SOURCE, detail=f"line 2: {MARK}("),
        Mechanism(tag=Tag.NCCL, evidence=Evidence.TRACE, detail=f"2 x ncclDevKernel_{MARK}"),
        Mechanism(tag=Tag.NCCL, evidence=Evidence.SASS, detail="12 system-wide atomics"),
    ),
    "timelines": (timeline(0), timeline(1)),
}
WITHHELD = {"withholds_source": True}


def finish(run: Run, verdict: Verdict) -> None:
    failed: dict[str, Any] = {"trials": (), "phase": Phase.BUILD, "cause": "compiler"}
    more = {} if verdict is Verdict.OK else failed
    told = {**QUOTED, **more}
    if verdict is Verdict.OK:
        told |= {"message": "Correct in every trial.", "evidence": None}
    factory.finish(run, factory.make_report(run, verdict, **told))


def make_withheld(send: Send) -> Submission:
    """An agent's two steps at a problem with what was said, and another kernel: what failed, what
    is right, and what a host declined."""
    folder = "kernels/1_allreduce/attempt_1"
    lines = "\n".join(json.dumps({**LINE, "step": step}) for step in (1, 2))
    files = {
        f"{folder}/step_01_pytorch.py": SOURCE.encode(),
        f"{folder}/step_02_pytorch.py": OTHER.encode(),
        "kernels/2_allgather/attempt_1/step_01_pytorch.py": f"{SOURCE}#\n".encode(),
        "manifest.json": json.dumps(MANIFEST).encode(),
        "attempts.jsonl": lines.encode(),
        TRANSCRIPT: zipped({"role": "assistant", "text": f"I write {MARK}"}),
    }
    answer = send({**AGENTIC, **WITHHELD}, make_tar(files))
    assert answer.status_code == 201, answer.json()
    first, second, third = Run.objects.order_by("kernel__problem", "kernel__step")
    finish(first, Verdict.OK)
    finish(second, Verdict.BUILD_ERROR)
    Decline.objects.create(
        run=third, host="h", reason=f"it needs {MARK}", declined_at=first.created_at
    )
    return Submission.objects.get(pk=answer.json()["submission"])


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def text_of(answer: Any) -> str:
    body = b"".join(answer)
    if body.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            body = b"\n".join(archive.read(name) for name in archive.namelist())
    return bytes(body).decode(errors="replace")


def telling(client: Any, asked: list[str]) -> list[str]:
    """Return those that quote the source."""
    client.raise_request_exception = False
    return [one for one in asked if MARK in text_of(client.get(one))]


TOLD = (
    *("/kernels/{second}", "/kernels/{second}.json", "/kernels/{second}/bundle.zip"),
    *("/kernels/{first}?diff={second}", "/kernels/{second}?diff=previous"),
    *(
        "/runs/{run}",
        "/runs/{run}.json",
        "/runs/{run}/bundle.zip",
        "/runs/{run}.csv?table=mechanisms",
        "/runs/{run}/trace.json",
    ),
    *(f"/figures/timeline{form}?run={{run}}" for form in ("", ".csv", ".json")),
    *("/submissions/{number}", "/submissions/{number}.json", "/submissions/{number}.csv"),
    *("/submissions/{number}/1/attempt-1", "/submissions/{number}/1/attempt-1.json"),
    *("/compare?kernels={first},{second}", "/runs/{waiting}", "/runs/{waiting}.json"),
)
TOLD_BY_API = (
    *("kernels/{second}", "runs", "runs/{run}", "runs/{run}/report", "runs/{waiting}"),
    "submissions/{number}/1/attempt-1",
)


def filled(withheld: Submission, patterns: tuple[str, ...], stem: str = "") -> list[str]:
    failed, waiting = (withheld.kernels.filter(problem=n).latest("step").runs.get() for n in (1, 2))
    told = {
        **{"first": digest_of(SOURCE), "second": digest_of(OTHER), "number": withheld.pk},
        **{"run": failed.pk, "waiting": waiting.pk},
    }
    return [stem + one.format(**told) for one in patterns]
