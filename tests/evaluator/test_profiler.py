"""What a rank records of itself, read back as the judge reads it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from evaluator.messages.profile import EventKind
from evaluator.profiling.mechanism import read_instructions
from evaluator.profiling.timeline import MAX_BYTES, MAX_EVENTS, read_timeline
from evaluator.rank import profiler as profile_rank
from evaluator.rank.profiler import ROUNDS, device_code, record

SASS = Path(__file__).parent / "traces" / "sm90a.sass"


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """An event as torch's profiler hands it out."""

    what: str
    on: str = "CUDA"
    at_ns: int = 1_000_000
    for_ns: int = 2_500
    annotates: bool = False
    metadata: str = ""
    activity: str = "kernel"

    def name(self) -> str:
        return self.what

    def device_type(self) -> SimpleNamespace:
        return SimpleNamespace(name=self.on)

    def start_ns(self) -> int:
        return self.at_ns

    def duration_ns(self) -> int:
        return self.for_ns

    def device_resource_id(self) -> int:
        return 7

    def is_user_annotation(self) -> bool:
        return self.annotates

    def metadata_json(self) -> str:
        return self.metadata

    def activity_type(self) -> str:
        return self.activity


class FromAnOlderTorch:
    """The same without what later versions added."""

    def __init__(self, event: Recorded) -> None:
        self.name, self.device_type = event.name, event.device_type
        self.start_ns, self.duration_ns = event.start_ns, event.duration_ns
        self.device_resource_id = event.device_resource_id


def noted(rounds: list[int]) -> Callable[[], None]:
    def calls() -> None:
        rounds.append(len(rounds))

    return calls


def test_a_real_recording_holds_the_operators_of_the_last_round() -> None:
    matrix = torch.ones(64, 64)

    def calls() -> None:
        with torch.profiler.record_function("hides what is inside"):
            (matrix @ matrix).relu()
        torch.zeros(64, 64).copy_(matrix)

    began_ns = time.time_ns()
    timeline = read_timeline(record(calls, "cpu"), 1)
    assert timeline is not None
    assert began_ns < timeline.origin_ns < time.time_ns()
    kinds = [(event.name, event.kind) for event in timeline.events]
    assert kinds == [
        ("aten::matmul", EventKind.COMPUTE),
        ("aten::relu", EventKind.COMPUTE),
        ("aten::zeros", EventKind.COMPUTE),
        ("aten::copy_", EventKind.COPY),
    ]
    assert 0 < timeline.compute_us <= timeline.span_us < 60e6
    assert timeline.dropped_events == 0


def test_more_events_than_fit_are_dropped_and_counted() -> None:
    ones = torch.ones(2)

    def calls() -> None:
        for _ in range(MAX_EVENTS + 100):
            ones.abs()

    timeline = read_timeline(record(calls, "cpu"), 0)
    assert timeline is not None
    assert (len(timeline.events), timeline.dropped_events) == (MAX_EVENTS, 100)


def test_names_that_grow_in_json_still_fit() -> None:
    rows = [("\x00" * 200, "kernel", 0.0, 1.0, 0, None, False)] * MAX_EVENTS
    text = profile_rank._encoded({"device": "cuda", "origin_ns": 1, "events": rows})
    assert len(text) <= MAX_BYTES
    timeline = read_timeline(text, 0)
    assert timeline is not None
    assert len(timeline.events) == timeline.dropped_events == MAX_EVENTS // 2


def test_every_round_is_run_once() -> None:
    rounds: list[int] = []
    record(noted(rounds), "cpu")
    assert len(rounds) == ROUNDS


def test_a_rank_without_a_profiler_still_takes_part_in_every_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(_: bool) -> object:
        raise RuntimeError("no CUPTI here")

    monkeypatch.setattr(profile_rank, "_profiler", fails)
    rounds: list[int] = []
    answer = record(noted(rounds), "cpu")
    assert json.loads(answer) == {"error": "RuntimeError"}
    assert read_timeline(answer, 0) is None
    assert len(rounds) == ROUNDS


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(0), KeyboardInterrupt()])
def test_calls_that_raise_end_no_run(error: BaseException) -> None:
    def calls() -> None:
        raise error

    assert json.loads(record(calls, "cpu")) == {"error": type(error).__name__}
    assert read_timeline(record(lambda: None, "cpu"), 0) is not None


def test_device_events_are_kernels_copies_and_fills() -> None:
    events: list[Any] = [
        Recorded(what="ncclDevKernel_AllGather_RING_LL(...)", at_ns=3_500),
        Recorded(what="nccl:all_gather", annotates=True, activity="gpu_user_annotation"),
        Recorded(what="cudaLaunchKernel", on="CPU", activity="cuda_runtime"),
        Recorded(what="Context Sync", activity="cuda_sync"),
        Recorded(
            what="Memcpy DtoD (Device -> Device)",
            activity="gpu_memcpy",
            metadata='"device": 0, "context": 1, "bytes": 4096, "memory bandwidth (GB/s)": 1.5',
        ),
        Recorded(
            what="Memcpy DtoD (Device -> Device)",
            activity="gpu_memcpy",
            metadata='"fromDevice": 1, "inDevice": 0, "toDevice": 0, "bytes": 8192',
        ),
        Recorded(what="Memcpy PtoP (Device -> Device)", activity="gpu_memcpy"),
        Recorded(what="Memset (Device)", activity="gpu_memset", metadata='"bytes": 64'),
    ]
    rows = list(profile_rank._device_rows(events, 1_000))
    assert rows[0] == ("ncclDevKernel_AllGather_RING_LL(...)", "kernel", 2.5, 2.5, 7, None, False)
    assert [(kind, nbytes, is_peer) for _, kind, _, _, _, nbytes, is_peer in rows[1:]] == [
        ("memcpy", 4096, False),
        ("memcpy", 8192, True),
        ("memcpy", None, True),
        ("memset", 64, False),
    ]


def test_an_older_torch_tells_less_and_is_read_as_well() -> None:
    events = [FromAnOlderTorch(Recorded(what=name)) for name in ("k(int)", "Memset (Device)")]
    kinds = [row[1] for row in profile_rank._device_rows(events, 0)]
    assert kinds == ["kernel", "memset"]


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Build folders with two binaries, and one place where a `cuobjdump` is looked for."""
    for variable, name in (("TORCH_EXTENSIONS_DIR", "k/k.so"), ("TRITON_CACHE_DIR", "h/t.cubin")):
        path = tmp_path / variable / name
        path.parent.mkdir(parents=True)
        path.write_bytes(b"\x7fELF")
        monkeypatch.setenv(variable, str(tmp_path / variable))
    (tmp_path / "TRITON_CACHE_DIR" / "h" / "__triton_launcher.so").write_bytes(b"\x7fELF")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    (tmp_path / "bin").mkdir()
    return tmp_path


def install(folder: Path, script: str) -> None:
    tool = folder / "bin" / "cuobjdump"
    tool.write_text(f"#!/bin/sh\nPATH=/bin:/usr/bin\n{script}\n")
    tool.chmod(0o755)


def test_what_was_built_is_disassembled_and_counted(built: Path) -> None:
    install(built, f'test "$1" = -sass && test -s "$2" && cat {SASS}')
    counts = read_instructions(device_code())
    assert counts is not None
    assert (counts["multimem"], counts["tma_store"]) == (2, 8)  # each binary shows the same text


def test_without_a_disassembler_there_are_no_counts(built: Path) -> None:
    assert json.loads(device_code()) == {"error": "cuobjdump is not installed"}
    assert read_instructions(device_code()) is None


def test_a_disassembler_that_fails_counts_nothing(built: Path) -> None:
    install(built, "echo no device code >&2; exit 255")
    assert read_instructions(device_code()) == {}


def test_a_disassembler_that_hangs_is_ended_with_all_it_started(
    built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profile_rank, "DISASSEMBLY_S", 0.5)
    install(built, f"cat {SASS}; sleep 60")
    began = time.monotonic()
    counts = read_instructions(device_code())
    assert time.monotonic() - began < 20
    assert counts is not None
    assert counts["multimem"] == 2  # what both binaries gave until then


def test_endless_output_ends(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile_rank, "MAX_SASS_BYTES", 1 << 16)
    install(built, f"while true; do cat {SASS}; done")
    counts = read_instructions(device_code())
    assert counts is not None
    assert 4 <= counts["multimem"] <= 8
