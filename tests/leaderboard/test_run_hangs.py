"""The page of a run that hung on its GPUs names the kernel and the line that launched it."""

from __future__ import annotations

import html
import re

import pytest
from django.test import Client

from evaluator.messages.report import RankLog, Verdict
from leaderboard.models import Run
from leaderboard.run_pages.logs import folded, log_tail
from tests.leaderboard import factory

AT_GPU = "ranks 0, 1 launched everything, and the GPU never finished it"
OLDER = "ranks 0, 1 wait for the GPU, with nothing left to call"
SAYS = "Kernel spin never finished. Line 8 launched it."
TRITON = """import triton

@triton.jit
def spin(flag):
    pass

def solution(x):
    spin[(1,)](x)
    return x
"""


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
@pytest.mark.parametrize("words", [AT_GPU, OLDER, f"{AT_GPU}. {SAYS}"])
def test_the_page_of_a_hang_names_the_kernel_and_folds_our_frames(
    client: Client, words: str
) -> None:
    kernel = factory.make_kernel(factory.make_submission(), factory.make_problem(), source=TRITON)
    run = factory.make_run(kernel, device="cuda")
    report = factory.make_report(
        run,
        Verdict.TIMEOUT,
        message=f"no answer from rank 0, 1: {words}",
        evidence=words,
        logs=(RankLog(rank=0, text=STACK),),
    )
    factory.finish(run, report)
    text = text_of(client, run)
    assert f"{SAYS} Line 8 spin[(1,)](x)" in text
    assert text.split("What shows it")[0].count(SAYS) == 1
    assert AT_GPU in text.split("Hardware")[0]
    assert "nothing left to call" not in text.split("Hardware")[0]
    assert "… 2 frames of the judge's runner" in text
    assert "/x/evaluator/rank/runner.py" in text  # in the whole log
    assert (
        f'href="/kernels/{kernel.source_id}?run={run.id}#L-8"' in client.get(f"/runs/{run.id}").text
    )
