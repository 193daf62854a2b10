"""Whatever bytes come from a submission's side, a verdict follows and never an error of ours."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from evaluator.buffers.control import Control
from evaluator.buffers.control_page import CONTROL_BYTES, sealed_memfd
from evaluator.diagnosis.claim_reader import CLAIMABLE, read_claim, read_end
from evaluator.diagnosis.diagnose import refine
from evaluator.host import processes
from evaluator.judge.findings import Findings
from evaluator.messages.codec import decode, encode
from evaluator.messages.faults import Fault
from evaluator.messages.job import Job, Limits
from evaluator.messages.profile import RankTimeline
from evaluator.messages.report import MAX_REPORT_BYTES, Isolation, Phase, RankLog, Report, Verdict
from evaluator.profiling.mechanism import mechanisms, read_instructions
from evaluator.profiling.timeline import align, read_timeline
from evaluator.sandbox import rank_group
from evaluator.sandbox.logs import LogCollector
from evaluator.sandbox.rank_group import RankGroup
from tests.evaluator.host_traces import descendants
from tests.evaluator.test_messages import REPORT

ROUNDS = 400
WORLD_SIZE = 2
JOB = Job(problem="allreduce", source="def solution(tensor): return tensor")
KNOWN = {
    "environment": REPORT.environment,
    "isolation": Isolation.BWRAP,
    "problem": "allreduce",
    "problem_digest": "0" * 64,
}
# Values that readers of JSON have stumbled over.
ODD: tuple[Any, ...] = (
    *(True, False, None, "", 0, -1, 1, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63), 10**4000),
    *(-(10**4299), 1e308, 1e-308, -0.0, float("nan"), float("inf"), float("-inf"), "\0", "\ud800"),
    *(
        "\U0001f600" * 3000,
        "__class__",
        "ok",
        "oom",
        "exception",
        [],
        {},
        [[]],
        {"rank": 1},
        "9" * 99,
    ),
)
SAMPLES: tuple[dict[str, Any], ...] = (
    {"rank": 1, "code": -11},
    {"verdict": "oom", "cause": "memory", "text": "too much"},
    {"instructions": {"multimem": 3, "tma_load": 1}},
    {
        "device": "cuda",
        "origin_ns": 10**18,
        "dropped": 0,
        "graph_launches": 1,
        "events": [["nccl", "kernel", 1.5, 2.0, 7, None, False]] * 3,
    },
)
LINES = (
    'Thread 0x00007f0000000001 (most recent call first):\n  File "/x/a.py", line 999999999 in f\n',
    "last collective: all_reduce seq=999999999999 group=0 state=started\n",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate\n",
    "[E1123 10:00:00.1] CUDA error: an illegal memory access was encountered\n",
    "ptxas fatal   : \n",
    "Traceback (most recent call last):\n",
)


@pytest.fixture
def chance() -> random.Random:
    return random.Random(18)


def _json_bytes(chance: random.Random) -> Iterator[bytes]:
    """Samples with values exchanged at any depth, keys twice, and bytes changed."""
    for _ in range(ROUNDS):
        sample = chance.choice(SAMPLES)
        text = json.dumps(_changed(sample, chance), ensure_ascii=chance.random() < 0.5)
        if chance.random() < 0.2:
            text = text[:-1] + f', "rank": {json.dumps(chance.choice(ODD))}}}'
        raw = bytearray(text.encode(errors="surrogatepass"))
        for _ in range(chance.choice((0, 0, 1, 8))):
            raw[chance.randrange(len(raw))] = chance.randrange(256)
        yield bytes(raw)
    yield from (b"", b"null", b"[" * 100_000, b"\xff\xfe\x00\xd8", b'{"a":' * 50_000, b"9" * 5000)


def _changed(value: Any, chance: random.Random) -> Any:
    if chance.random() < 0.25:
        return chance.choice(ODD)
    if isinstance(value, dict):
        return {key: _changed(item, chance) for key, item in value.items()}
    if isinstance(value, list):
        return [_changed(item, chance) for item in value]
    return value


def test_any_note_of_an_end_is_a_code_and_a_rank_or_nothing(chance: random.Random) -> None:
    for raw in _json_bytes(chance):
        end = read_end(raw, WORLD_SIZE)
        assert end.code is None or (type(end.code) is int and abs(end.code) <= 255)
        assert end.ranks in {(), (0,), (1,)}
        assert not any(type(rank) is bool for rank in end.ranks)


def test_what_a_note_says_is_read() -> None:
    assert read_end(b'{"rank": 1, "code": -11}', 2).ranks == (1,)
    assert read_end(b'{"rank": 1, "code": -11}', 2).code == -11
    assert read_end(b'{"rank": true, "code": -11}', 2).ranks == ()


def test_any_claim_counts_against_the_kernel(chance: random.Random) -> None:
    for raw in _json_bytes(chance):
        assert read_claim(raw).verdict in CLAIMABLE
        _is_storable(_report(Fault(read_claim(raw).verdict, read_claim(raw).cause, "x")))


def test_any_answer_about_a_profile_is_storable(chance: random.Random) -> None:
    for raw in _json_bytes(chance):
        timelines = align([t for t in (read_timeline(raw, r) for r in range(2)) if t])
        own = Findings(timelines=tuple(timelines))
        own.mechanisms = mechanisms(
            "symm_mem.get_buffer()", read_instructions(raw) or {}, timelines
        )
        fault = Fault(Verdict.RUNTIME_ERROR, "exit", "x")
        _is_storable(own.report(JOB, fault, KNOWN))


def test_any_log_is_storable(chance: random.Random) -> None:
    for _ in range(ROUNDS // 4):
        parts = chance.choices([*(line.encode() for line in LINES), os.urandom(99)], k=40)
        read, own = _collected(b"".join(parts))
        fault = chance.choice(("exit", "signal_11", "exception", "deadlock", "claim"))
        verdict = Verdict.TIMEOUT if fault == "deadlock" else Verdict.RUNTIME_ERROR
        found = refine(verdict, fault, None, read, Phase.VERIFY, ranks=(0,))
        assert found.verdict.counts
        assert len(read[0].text.encode()) <= own + 200
        _is_storable(replace(_report(Fault(verdict, fault, "x")), logs=read))


def test_a_log_of_bytes_that_are_no_text_keeps_to_its_cap() -> None:
    read, cap = _collected(b"\xff" * (3 << 10))
    assert len(read[0].text.encode()) <= cap + 200


def test_any_control_page_and_any_note_is_a_verdict(
    chance: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rank_group, "HANG_REPORT_S", 0.0)
    for raw in _json_bytes(chance):
        with _Ended(raw) as side:
            words = [chance.choice((0, 1, 2**63, 2**64 - 1)) for _ in range(4)]
            for control in side.controls:
                control._write(2048 * 8, struct.pack("4Q", *words))
                control._write(32 << 10, chance.randbytes(99))
            with pytest.raises(Fault) as caught:
                _served(side)
            _is_storable(_report(caught.value))
            assert all(len(control.answer) <= 4 << 20 for control in side.controls)


def test_a_report_that_is_too_long_goes_without_what_ranks_say() -> None:
    raw = json.dumps(
        {**SAMPLES[3], "events": [["\U0001f600" * 200, "kernel", 1, 1, 1, 1, False]] * 400}
    )
    timeline = read_timeline(raw.encode(), 0)
    assert timeline is not None
    many: tuple[RankTimeline, ...] = tuple(replace(timeline, rank=r) for r in range(64))
    logs = tuple(RankLog(rank=r, text="\U0001f600" * (16 << 10)) for r in range(64))
    report = Findings(timelines=many, logs=logs).report(
        JOB, Fault(Verdict.OOM, "memory", "x"), KNOWN
    )
    assert report.timelines == () == report.logs
    assert len(json.dumps(encode(report))) <= MAX_REPORT_BYTES
    short = Findings(timelines=many[:2]).report(JOB, Fault(Verdict.OOM, "memory", "x"), KNOWN)
    assert len(short.timelines) == 2


@pytest.mark.parametrize("name", [b"\xff) R 1 (", b"))) S 0 0", b"\n\x80\x81"])
def test_a_process_may_be_called_anything(name: bytes) -> None:
    code = (
        "import ctypes,sys,time\n"
        f"ctypes.CDLL(None).prctl(15, {name!r}, 0, 0, 0)\nprint(flush=True)\ntime.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as own:
        assert own.stdout is not None
        own.stdout.readline()
        assert processes.threads([own.pid]) == {own.pid: False}
        assert list(processes.ancestry(own.pid))[1] == os.getpid()
        assert own.pid in processes.tree(os.getpid())
        assert own.pid in descendants()
        assert processes.processor_s(own.pid) >= 0
        own.send_signal(signal.SIGKILL)


class _DeadSandbox:
    """A sandbox that has ended by itself."""

    isolation, is_alive = Isolation.BWRAP, False
    process = SimpleNamespace(returncode=1)

    def exceeded(self) -> None:
        return None

    def was_starved(self) -> bool:
        return False

    def kill(self) -> None:
        return None


class _Ended:
    """A side whose ranks have ended, and whose channel has said `note`."""

    def __init__(self, note: bytes) -> None:
        ours, self._theirs = socket.socketpair()
        self._theirs.setblocking(False)
        self._theirs.send(note[:4096] or b" ")
        fds = [sealed_memfd("control", CONTROL_BYTES) for _ in range(WORLD_SIZE)]
        self._own = RankGroup(
            side="submission",
            limits=Limits(verify_s=0.0),
            sandbox=_DeadSandbox(),  # type: ignore[arg-type]
            channel=ours,
            logs=LogCollector(1 << 10),
            slab_channels=[],
            control_fds=fds,
            controls=[Control(fd) for fd in fds],
        )

    def __enter__(self) -> RankGroup:
        self._own.enter(Phase.VERIFY)
        return self._own

    def __exit__(self, *_: object) -> None:
        self._own.kill()
        self._theirs.close()


def _served(side: RankGroup) -> None:
    side.wait()
    side.check_health()


def _collected(said: bytes) -> tuple[tuple[RankLog, ...], int]:
    cap = 2 << 10
    own = LogCollector(cap)
    end = own.open_pipe(0)
    own.start()
    os.write(end, said)
    os.close(end)
    return own.finish(), cap


def _report(fault: Fault) -> Report:
    return Findings().report(JOB, fault, KNOWN)


def _is_storable(report: Report) -> None:
    """As JSON without NaN, of a bounded length, the same again when it is read, and counted."""
    text = json.dumps(encode(report), allow_nan=False)
    assert len(text) <= MAX_REPORT_BYTES
    assert decode(Report, json.loads(text)) == report
    text.encode("ascii")
    assert report.verdict.counts
    assert len(report.message) <= 2000
    assert len(report.cause or "") <= 64
