"""What ranks say and print: closed lists, caps, and no invisible characters."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

import pytest

import evaluator
from evaluator.diagnosis.claim_reader import CAUSES, CLAIMABLE, read_claim
from evaluator.diagnosis.scan import PATTERNS, lines_of, scan_source
from evaluator.messages.report import Verdict
from evaluator.messages.text import plain_text
from evaluator.rank.failure_claim import CallFault, claim_of
from evaluator.sandbox.logs import LogCollector

BUILD = ("import", Verdict.BUILD_ERROR)
IMPORT = ("import", Verdict.IMPORT_ERROR)
CALL = ("call", Verdict.RUNTIME_ERROR)


def _named(name: str, text: str) -> Exception:
    """An exception of a library that is not installed here."""
    error: Exception = type(name, (RuntimeError,), {})(text)
    return error


@pytest.mark.parametrize(
    ("error", "stage", "verdict", "cause"),
    [
        (SyntaxError("x"), "import", Verdict.BUILD_ERROR, "syntax"),
        (RuntimeError("Error building extension 'k'"), "import", Verdict.BUILD_ERROR, "compiler"),
        (ImportError("no module"), "import", Verdict.IMPORT_ERROR, "import"),
        (NameError("foo"), "import", Verdict.IMPORT_ERROR, "api"),
        (AttributeError("foo"), "call", Verdict.RUNTIME_ERROR, "api"),
        (ValueError("boom"), "import", Verdict.IMPORT_ERROR, "exception"),
        (RuntimeError("The size of tensor a"), "call", Verdict.RUNTIME_ERROR, "shape"),
        (MemoryError(), "call", Verdict.OOM, "memory"),
        (KeyboardInterrupt(), "call", Verdict.RUNTIME_ERROR, "exception"),
        (RuntimeError("Ninja is required to load C++ extensions"), *BUILD, "ninja_missing"),
        (RuntimeError("x\nptxas /tmp/k.ptx, line 3; error   : Unknown modifier"), *BUILD, "ptxas"),
        (ImportError("/tmp/k.so: undefined symbol: _Z5totali"), *BUILD, "linker"),
        (ImportError("/tmp/k.so: cannot open shared object file"), *IMPORT, "not_built"),
        (ImportError("libnvshmem.so.3: cannot open shared object file"), *IMPORT, "import"),
        (_named("CompilationError", "at 2:36:\ndef f():\n   ^\nbad"), *BUILD, "triton_compile"),
        (_named("OutOfResources", "out of resource: shared"), *BUILD, "triton_resources"),
        (_named("OutOfMemoryError", "CUDA out of memory."), "call", Verdict.OOM, "gpu_memory"),
        (RuntimeError("CUDA error: out of memory"), "call", Verdict.OOM, "gpu_memory"),
        (RuntimeError("DefaultCPUAllocator: can't"), "call", Verdict.OOM, "memory"),
        (_named("AcceleratorError", "CUDA error: an illegal memory access was encountered"),
         *CALL, "illegal_access"),
        (_named("AcceleratorError", "CUDA error: device-side assert triggered"),
         *CALL, "device_assert"),
        (_named("AcceleratorError", "CUDA error: invalid configuration argument"),
         *IMPORT, "invalid_configuration"),
        (_named("AcceleratorError", "CUDA error: a new one"), *CALL, "cuda"),
        (_named("DistBackendError", "NCCL error in: x, invalid usage"), *CALL, "nccl"),
        (RuntimeError("CUBLAS error: CUBLAS_STATUS_ALLOC_FAILED"), *CALL, "vendor_library"),
        (RuntimeError("SymmetricMemory: not allocated"), *CALL, "symmetric_memory"),
        (RuntimeError("symm_mem: multicast is not supported"), *CALL, "multicast"),
        (RuntimeError("expected scalar type Float but found BFloat16"), *CALL, "dtype"),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), *CALL, "shape"),
        (AttributeError("'tuple' object has no attribute 'shape'"), *CALL, "api"),
        (RuntimeError("[x] Connection closed by peer [127.0.0.1]:1"), *CALL, "peer_lost"),
        (
            CallFault("shape_mismatch", "output_shape", "t"),
            "call",
            Verdict.SHAPE_MISMATCH,
            "output_shape",
        ),
    ],
)  # fmt: skip
def test_an_exception_becomes_a_claim(
    error: BaseException, stage: str, verdict: Verdict, cause: str
) -> None:
    claim = read_claim(claim_of(error, stage))
    assert (claim.verdict, claim.cause) == (verdict, cause)


@pytest.mark.parametrize(
    "forged",
    [
        b"",
        b"{",
        b"[1]",
        b"[" * 9000,
        b'{"verdict": "ok", "cause": "x", "text": "t"}',
        b'{"verdict": "infra_error", "cause": "x", "text": "t"}',
        b'{"verdict": "host_unsupported", "cause": "x", "text": "t"}',
        b'{"verdict": "cancelled", "cause": "x", "text": "t"}',
        b'{"verdict": "oom", "cause": "<script>", "text": "t"}',
        b'{"verdict": "oom", "cause": "a_word_of_its_own", "text": "t"}',
        b"\xff\xfe\x00",
    ],
)
def test_a_forged_claim_is_a_runtime_error(forged: bytes) -> None:
    assert read_claim(forged).verdict is Verdict.RUNTIME_ERROR


def test_a_compilers_output_is_cut_to_its_first_error() -> None:
    output = "Error building extension 'k': c++ -O3\nmain.cpp:3:1: error: expected ';'\nnote: x"
    claim = read_claim(claim_of(RuntimeError(output), "import"))
    assert claim.text == "RuntimeError: main.cpp:3:1: error: expected ';'"


def test_every_claimable_verdict_counts_against_the_kernel() -> None:
    assert all(verdict.counts and verdict is not Verdict.OK for verdict in CLAIMABLE)


def test_every_cause_that_a_rank_claims_is_known() -> None:
    sources = "".join(path.read_text() for path in Path(evaluator.__file__).parent.rglob("*.py"))
    claimed = re.findall(r'CallFault\(\s*"\w+",\s*"(\w+)"', sources)
    assert len(claimed) >= 6
    assert set(claimed) <= CAUSES


def test_an_endless_text_is_read_no_further_than_needed() -> None:
    claim = read_claim(claim_of(RuntimeError("x" * (8 << 20) + " Ninja is required"), "call"))
    assert (claim.cause, len(claim.text)) == ("exception", 500)


def test_claim_text_is_plain_and_short() -> None:
    forged = json.dumps(
        {"verdict": "oom", "cause": "memory", "text": "a\x00\u202eb\ud800" + "c" * 9000}
    )
    text = read_claim(forged.encode()).text
    assert text.startswith("a\ufffd\ufffdb\ufffd")
    assert len(text) == 500


def test_plain_text_keeps_what_people_write() -> None:
    assert plain_text("naïve → 漢字\n\tok") == "naïve → 漢字\n\tok"
    assert plain_text(b"\x1b[31mred\xff") == "\ufffd[31mred\ufffd"
    assert plain_text("abcdef", 4) == "abc…"


def test_a_flood_keeps_head_and_tail() -> None:
    logs = LogCollector(1000)
    write = logs.open_pipe(0)
    logs.start()
    os.write(write, b"first line\n")
    for _ in range(50):
        os.write(write, b"x" * 4000)
    os.write(write, b"\nlast line")
    os.close(write)
    time.sleep(0.1)
    (log,) = logs.finish()
    assert log.text.startswith("first line")
    assert log.text.endswith("last line")
    assert len(log.text) < 1200
    assert log.dropped_bytes == 50 * 4000 + 21 - 1000


def test_a_silent_rank_has_no_log() -> None:
    logs = LogCollector(1000)
    os.close(logs.open_pipe(0))
    logs.start()
    assert logs.finish() == ()


SAMPLES = {
    "uses_nccl": "dist.all_reduce(x)",
    "uses_vendor_lib": "torch.matmul(a, b)",
    "static:ctypes": "import ctypes",
    "static:frames": "sys._getframe(1)",
    "static:garbage-collector": "gc.get_objects()",
    "static:processes": "os.fork()",
    "static:threads": "import threading",
    "static:proc-filesystem": "open('/proc/self/maps')",
    "static:patched-clock": "time.perf_counter = fake",
    "static:patched-comparison": "torch.allclose = yes",
    "static:side-stream": "s = torch.cuda.Stream()",
    "static:cuda-graph": "g = torch.cuda.CUDAGraph()",
    "static:seeding": "torch.manual_seed(42)",
}


def test_every_pattern_has_a_sample() -> None:
    assert set(SAMPLES) == set(PATTERNS)


@pytest.mark.parametrize("flag", SAMPLES)
def test_a_pattern_is_flagged_at_its_line(flag: str) -> None:
    source = f"import torch\n{SAMPLES[flag]}\n"
    assert flag in scan_source(source)
    assert lines_of(source)[flag] == [2]


def test_an_innocent_source_has_no_flag() -> None:
    assert scan_source("def solution(x):\n    return x + 1\n") == ()
