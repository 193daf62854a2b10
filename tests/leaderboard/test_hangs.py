"""The page of a run that hung on its GPUs names the kernel and the line that launched it."""

from __future__ import annotations

import html
import re
import time

import pytest
from django.test import Client

from evaluator.messages.report import RankLog, Verdict
from leaderboard.models import Run
from leaderboard.run_pages.hangs import Launch, hang_of, launches
from leaderboard.run_pages.logs import folded, log_tail
from tests.leaderboard import factory

AT_GPU = "ranks 0, 1 wait for the GPU, with nothing left to call"
TRITON = """import triton

@triton.jit
def spin(flag):
    pass

def solution(x):
    spin[(1,)](x)
    return x
"""
CUDA = """CODE = r'''
__global__ void wait_all(int* flag) { while (!*flag); }
void run(int* flag) {
  copy<float><<<1, 32>>>(flag);
  wait_all<<<1, 32, 0, stream>>>(flag);
  cudaLaunchCooperativeKernel((void*)meet, grid, block, args);
}
'''
def solution(x):
    torch.cuda.synchronize()
"""


def timeout(evidence: str) -> dict[str, object]:
    return {"verdict": "timeout", "message": f"no answer: {evidence}", "evidence": evidence}


@pytest.mark.parametrize(
    "source",
    ["f[0]()\n" * 10_000, "a" + " " * 100_000, TRITON + "a = spin\n" * 10_000 + "a[0]()\n" * 99],
)
def test_a_hostile_source_takes_no_time(source: str) -> None:
    began = time.monotonic()
    launches(source)
    assert time.monotonic() - began < 5.0


def test_a_decorator_too_deep_to_write_launches_nothing() -> None:
    assert launches("@jit" + ".x" * 3000 + "\ndef f(): pass\n") == []


def test_launches_are_found_in_triton_and_cuda() -> None:
    assert launches(TRITON) == [Launch("spin", 8)]
    assert launches(CUDA) == [Launch("copy", 4), Launch("wait_all", 5), Launch("meet", 6)]
    either = TRITON.replace("spin[(1,)]", "one = spin if x else None\n    one[(1,)]")
    assert launches(either) == [Launch("spin", 9)]
    pair = TRITON.replace("spin[(1,)]", "one, count = spin, 2\n    one[(1,)]")
    assert launches(pair) == [Launch("spin", 9)]
    assert launches("def solution(:\n") == []
    assert launches("x[0](1)\n") == []


def test_the_only_kernel_of_a_source_is_the_one_that_never_finished() -> None:
    found = hang_of(timeout(AT_GPU), TRITON)
    assert found is not None
    assert found.says == "Kernel spin never finished. Line 8 launched it."
    assert (found.line, found.code) == (8, "spin[(1,)](x)")


def test_of_several_kernels_all_are_named_with_their_lines() -> None:
    found = hang_of(timeout(AT_GPU), CUDA)
    assert found is not None
    assert "One of these never ended: copy (line 4), wait_all (line 5), meet" in found.says


def test_the_line_where_ranks_stood_is_named_with_the_launch_above_it() -> None:
    found = hang_of(timeout("ranks 0, 1 wait in submission.py line 10 (solution)"), CUDA)
    assert found is not None
    assert found.says == (
        "The ranks never got past line 10 (solution)."
        " The last launch above it is that of meet, in line 6."
    )
    assert found.code == "torch.cuda.synchronize()"
    at = hang_of(timeout("rank 0 waits in submission.py line 8 (solution)"), TRITON)
    assert at is not None
    assert at.says == "Kernel spin never finished. Line 8 (solution) launched it."


def test_nothing_is_made_up_where_the_report_or_the_source_says_nothing() -> None:
    assert hang_of(timeout("ranks 0, 1 wait in all_reduce"), TRITON) is None
    assert hang_of({**timeout(AT_GPU), "verdict": "runtime_error"}, TRITON) is None
    unknown = hang_of(timeout(AT_GPU), None)
    assert unknown is not None
    assert "This site does not hold the source" in unknown.says
    none = hang_of(timeout(AT_GPU), "def solution(x): return x\n")
    assert none is not None
    assert "launches no kernel by name" in none.says


STACK = """Current thread 0x00007f (most recent call first):
  File "/tmp/rank0/submission.py", line 9 in solution
  File "/x/evaluator/rank/series.py", line 43 in make_series
  File "/x/evaluator/rank/runner.py", line 80 in run_rank
last collective: barrier seq=1 group=0"""
TRACEBACK = """Traceback (most recent call last):
  File "/x/evaluator/rank/runner.py", line 80, in run_rank
    answer = call(arguments)
             ^^^^^^^^^^^^^^^
  File "/tmp/rank0/submission.py", line 9, in solution
    raise ValueError
ValueError: x"""


def test_frames_of_the_judge_are_folded_and_those_of_the_submission_are_not() -> None:
    assert folded(STACK).splitlines() == [
        "Current thread 0x00007f (most recent call first):",
        '  File "/tmp/rank0/submission.py", line 9 in solution',
        "  … 2 frames of the judge's runner",
        "last collective: barrier seq=1 group=0",
    ]
    assert folded(TRACEBACK).splitlines() == [
        "Traceback (most recent call last):",
        "  … 1 frame of the judge's runner",
        '  File "/tmp/rank0/submission.py", line 9, in solution',
        "    raise ValueError",
        "ValueError: x",
    ]
    assert folded("no frames\n") == "no frames"
    assert log_tail(f"built\n{TRACEBACK}\n") == folded(TRACEBACK)


def text_of(client: Client, run: Run) -> str:
    page = client.get(f"/runs/{run.id}").text
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page)))


@pytest.mark.django_db
def test_the_page_of_a_hang_names_the_kernel_and_folds_our_frames(client: Client) -> None:
    kernel = factory.make_kernel(factory.make_submission(), factory.make_problem(), source=TRITON)
    run = factory.make_run(kernel, device="cuda")
    report = factory.make_report(
        run,
        Verdict.TIMEOUT,
        message=f"no answer from rank 0, 1: {AT_GPU}",
        evidence=AT_GPU,
        logs=(RankLog(rank=0, text=STACK),),
    )
    factory.finish(run, report)
    text = text_of(client, run)
    assert "Kernel spin never finished. Line 8 launched it. Line 8 spin[(1,)](x)" in text
    assert "… 2 frames of the judge's runner" in text
    assert "/x/evaluator/rank/runner.py" in text  # in the whole log
    assert (
        f'href="/kernels/{kernel.source_id}?run={run.id}#L-8"' in client.get(f"/runs/{run.id}").text
    )
