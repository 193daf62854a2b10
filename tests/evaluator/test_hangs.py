"""A hang on GPUs is told by the kernel that never finished and the line that launched it."""

from __future__ import annotations

import time

import pytest

from evaluator.diagnosis.diagnose import Diagnosis, sentence, with_kernel
from evaluator.messages.faults import Fault
from evaluator.messages.hangs import Launch, hang_of, launches
from evaluator.messages.report import Verdict
from evaluator.messages.source_files import joined

AT_GPU = "ranks 0, 1 launched everything, and the GPU never finished it"
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


def test_names_and_lines_of_a_hostile_source_are_short_and_visible() -> None:
    name = "a" * 100_000
    found = hang_of(AT_GPU, TRITON.replace("spin", name))
    assert found is not None
    assert len(found.says) < 150
    assert len(found.code) == 160
    hidden = hang_of("rank 0 waits in submission.py line 1 (f)", "x = 1  # \u202e\x1b[2J")
    assert hidden is not None
    assert hidden.code == "x = 1  # \ufffd\ufffd[2J"
    many = "\n".join(f"k{number}<<<1, 1>>>();" for number in range(1000))
    listed = hang_of(AT_GPU, many)
    assert listed is not None
    assert listed.says.endswith("k4 (line 5) and 995 more.")


@pytest.mark.parametrize(
    "words", [AT_GPU, "ranks 0, 1 wait for the GPU, with nothing left to call"]
)
def test_older_words_of_the_judge_are_read_as_well(words: str) -> None:
    found = hang_of(words, TRITON)
    assert found is not None
    assert found.says == "Kernel spin never finished. Line 8 launched it."


def test_the_reason_of_the_judge_names_the_kernel() -> None:
    known = Diagnosis(verdict=Verdict.TIMEOUT, cause="deadlock", evidence=AT_GPU)
    fault = Fault(Verdict.TIMEOUT, "deadlock", "no answer from ranks 0, 1")
    assert sentence(fault, with_kernel(known, TRITON), None) == (
        f"no answer from ranks 0, 1: {AT_GPU}. Kernel spin never finished. Line 8 launched it."
    )
    for source in ("def solution(x): return x\n", "def solution(:\n"):
        assert with_kernel(known, source) == known
    slow = Diagnosis(verdict=Verdict.TIMEOUT, cause="compilation", evidence=AT_GPU)
    assert with_kernel(slow, TRITON) == slow
    other = Diagnosis(verdict=Verdict.RUNTIME_ERROR, cause="exception", evidence=AT_GPU)
    assert with_kernel(other, TRITON) == other


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
    found = hang_of(AT_GPU, TRITON)
    assert found is not None
    assert found.says == "Kernel spin never finished. Line 8 launched it."
    assert (found.line, found.code) == (8, "spin[(1,)](x)")


def test_of_several_kernels_all_are_named_with_their_lines() -> None:
    found = hang_of(AT_GPU, CUDA)
    assert found is not None
    assert (
        "One of these kernels never finished: copy (line 4), wait_all (line 5), meet" in found.says
    )


def test_the_line_where_ranks_stood_is_named_with_the_launch_above_it() -> None:
    found = hang_of("ranks 0, 1 wait in submission.py line 10 (solution)", CUDA)
    assert found is not None
    assert found.says == (
        "The ranks never got past line 10 (solution)."
        " The last launch above it is that of meet, in line 6."
    )
    assert found.code == "torch.cuda.synchronize()"
    at = hang_of("rank 0 waits in submission.py line 8 (solution)", TRITON)
    assert at is not None
    assert at.says == "Kernel spin never finished. Line 8 (solution) launched it."


def test_nothing_is_made_up_where_the_report_or_the_source_says_nothing() -> None:
    assert hang_of("ranks 0, 1 wait in all_reduce", TRITON) is None
    unknown = hang_of(AT_GPU, None)
    assert unknown is not None
    assert "This site does not hold the source" in unknown.says
    none = hang_of(AT_GPU, "def solution(x): return x\n")
    assert none is not None
    assert "launches no kernel by name" in none.says


def test_a_line_of_one_of_several_files_is_counted_over_all() -> None:
    files = {"kernel.py": "x = 1\nspin[(1,)](x)\n", "deep/waits.py": "a\nb\nc\n"}
    source = joined(files)
    found = hang_of("ranks 0, 1 wait in waits.py line 2 (meet)", source)
    assert found is not None
    assert source.split("\n")[(found.line or 0) - 1] == "b"
    twice = joined({**files, "waits.py": "d\n"})
    assert hang_of("ranks 0, 1 wait in waits.py line 2 (meet)", twice) is None
    assert hang_of("rank 0 waits in distributed_c10d.py line 9 (wait)", source) is None
