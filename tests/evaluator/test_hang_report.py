"""A rank that hangs says where when it is asked, and goes on."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from evaluator.diagnosis.stacks import stacks
from evaluator.messages.rank_setup import HANG_REPORT_SIGNAL
from evaluator.messages.report import RankLog

HANGS = """
import sys, time
import torch, torch.distributed as dist
from evaluator.rank import hang_report

hang_report.prepare()
dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=0, world_size=1)
dist.all_reduce(torch.ones(3))

def waits_for_ever():
    print("ready", flush=True)
    while True:
        time.sleep(0.05)

waits_for_ever()
"""


def test_the_stack_and_the_last_collective_are_told(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HANGS, str(tmp_path / "store")]
    said = tmp_path / "said"
    with said.open("w") as errors:
        rank = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors)
    with rank:
        assert rank.stdout is not None
        assert rank.stdout.readline() == b"ready\n"
        for times in (1, 2):
            os.kill(rank.pid, HANG_REPORT_SIGNAL)
            _wait_for(said, "last collective", times)
        assert rank.poll() is None
        rank.kill()
    (found,) = stacks([RankLog(rank=0, text=said.read_text())])
    assert "waits_for_ever" in str(found.frames[0])
    assert [own.call for own in found.entered] == ["all_reduce"]


def _wait_for(path: Path, text: str, times: int) -> None:
    deadline = time.monotonic() + 20
    while path.read_text().count(text) < times:
        assert time.monotonic() < deadline, path.read_text()
        time.sleep(0.02)
