"""A rank that hangs says where when it is asked, and goes on."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evaluator.diagnosis.stacks import stacks
from evaluator.messages.rank_setup import HANG_REPORT_SIGNAL
from evaluator.messages.report import RankLog

HANGS = """
import sys, time
import torch, torch.distributed as dist
from evaluator.rank import hang_report

hang_report.prepare(0)
dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=0, world_size=1)
dist.all_reduce(torch.ones(3))

def waits_for_ever():
    print("ready", flush=True)
    while True:
        time.sleep(0.05)

waits_for_ever()
"""
WAITS_IN_C = """
import ctypes, os, sys
from evaluator.rank import hang_report

wake, _ = os.pipe()
hang_report.prepare(wake)
libc = ctypes.PyDLL(None, use_errno=True)
buffer = ctypes.create_string_buffer(1)
print("ready", flush=True)
count = libc.read(0, buffer, 1)
print(count, flush=True)
sys.stdin.close()
"""
COMPILES = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

@triton.jit
def nothing(address):
    pass

source = ASTSource(fn=nothing, signature={"address": "*fp32"}, constexprs={})
triton.compile(source, target=GPUTarget("cuda", 90, 32))
"""
COMPILED = WAITS_IN_C.replace("libc =", f"{COMPILES}\nlibc =")


def test_the_stack_and_the_last_collective_are_told(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HANGS, str(tmp_path / "store")]
    said = tmp_path / "said"
    with said.open("w") as errors:
        rank = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
        )
    with rank:
        assert rank.stdin is not None
        assert rank.stdout is not None
        assert rank.stdout.readline() == b"ready\n"
        for times in (1, 2):
            os.kill(rank.pid, HANG_REPORT_SIGNAL)
            os.write(rank.stdin.fileno(), b"?")
            _wait_for(said, "last collective", times)
        assert rank.poll() is None
        rank.kill()
    (found,) = stacks([RankLog(rank=0, text=said.read_text())])
    assert "waits_for_ever" in str(found.frames[0])
    assert [own.call for own in found.entered] == ["all_reduce"]


@pytest.mark.parametrize("source", [WAITS_IN_C, COMPILED], ids=["plain", "compiled by Triton"])
def test_native_code_that_waits_goes_on_waiting_when_it_is_asked(
    source: str, tmp_path: Path
) -> None:
    if source is COMPILED and not importlib.util.find_spec("triton"):
        pytest.skip("Triton is not installed")
    program, said = tmp_path / "waits.py", tmp_path / "said"
    program.write_text(source)
    paths = {"PYTHONPATH": str(Path(__file__).parents[2]), "TRITON_CACHE_DIR": str(tmp_path)}
    with said.open("w") as errors:
        rank = subprocess.Popen(
            [sys.executable, str(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=os.environ | paths,
        )
    with rank:
        assert rank.stdin is not None
        assert rank.stdout is not None
        assert rank.stdout.readline() == b"ready\n"
        for times in (1, 2, 3):
            os.kill(rank.pid, HANG_REPORT_SIGNAL)
            _wait_for(said, "most recent call first", times)
        os.write(rank.stdin.fileno(), b"x")
        assert rank.stdout.readline() == b"1\n"


def _wait_for(path: Path, text: str, times: int) -> None:
    deadline = time.monotonic() + 20
    while path.read_text().count(text) < times:
        assert time.monotonic() < deadline, path.read_text()
        time.sleep(0.02)
