"""What a rank recorded becomes a timeline, whatever the bytes are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.messages.codec import decode, encode
from evaluator.messages.profile import EventKind, RankTimeline
from evaluator.profiling.timeline import (
    DEVICES,
    MAX_BYTES,
    MAX_EVENTS,
    MAX_NAME_CHARS,
    align,
    kind_of,
    read_timeline,
)

TRACES = Path(__file__).parent / "traces"
# Whole microseconds, so that brute force can count them.
GRID = st.integers(0, 60)


def recorded(name: str, rank: int = 0, unknown: EventKind = EventKind.KERNEL) -> RankTimeline:
    timeline = read_timeline((TRACES / name).read_bytes(), rank, unknown=unknown)
    assert timeline is not None
    return timeline


def written(*rows: object, **fields: Any) -> bytes:
    message = {"device": "cuda", "origin_ns": 10**18, "events": rows, **fields}
    return json.dumps(message).encode()


def test_communication_that_runs_beside_compute_is_overlap() -> None:
    timeline = recorded("nccl-overlap.json", rank=3)
    assert timeline.rank == 3
    assert [event.kind for event in timeline.events] == [
        EventKind.COMMUNICATION,
        EventKind.COMPUTE,
        EventKind.COMPUTE,
        EventKind.COPY,
        EventKind.MEMSET,
    ]
    assert timeline.communication_us == 60.0
    assert timeline.compute_us == 35.0
    assert timeline.overlap_us == 35.0
    assert timeline.span_us == 82.0
    assert timeline.idle_us == 13.0
    assert timeline.events[3].nbytes == 32 << 20


def test_a_kernel_of_unknown_kind_is_neither_compute_nor_communication() -> None:
    timeline = recorded("symmetric-memory.json")
    assert [event.kind for event in timeline.events] == [
        *[EventKind.COMMUNICATION] * 3,
        EventKind.KERNEL,
        EventKind.COMPUTE,
    ]
    assert (timeline.unknown_us, timeline.compute_us, timeline.overlap_us) == (40.0, 20.0, 0.0)
    assert (timeline.dropped_events, timeline.graph_launches) == (3, 2)


def test_a_kernel_that_reaches_no_other_gpu_can_only_compute() -> None:
    timeline = recorded("symmetric-memory.json", unknown=EventKind.COMPUTE)
    assert (timeline.unknown_us, timeline.compute_us) == (0.0, 50.0)


def test_copies_between_gpus_that_share_their_time_count_once() -> None:
    timeline = recorded("copy-engine.json")
    assert (timeline.communication_us, timeline.overlap_us) == (50.0, 40.0)


def test_a_cpu_trace_has_operators_and_collectives() -> None:
    timeline = recorded("gloo-rank0.json")
    kinds = {event.name: event.kind for event in timeline.events}
    assert kinds["gloo:all_reduce"] is EventKind.COMMUNICATION
    assert kinds["aten::matmul"] is EventKind.COMPUTE
    assert kinds["aten::copy_"] is EventKind.COPY
    assert 0 < timeline.overlap_us < timeline.communication_us


def test_ranks_of_one_host_are_shown_on_one_clock() -> None:
    names = ("nccl-overlap.json", "symmetric-memory.json", "copy-engine.json")
    ranks = [recorded(name, rank) for rank, name in enumerate(names)]
    aligned = align(ranks)
    assert len({timeline.origin_ns for timeline in aligned}) == 1
    assert [timeline.events[0].start_us for timeline in aligned] == [31.2, 30.0, 15.0]
    assert [timeline.span_us for timeline in aligned] == [timeline.span_us for timeline in ranks]


def test_a_rank_with_another_clock_moves_nobody() -> None:
    early = read_timeline(written(["k", "kernel", 1.0, 1.0, 0, None, False]), 0)
    late = read_timeline(written(origin_ns=2 * 10**18), 1)
    assert early is not None
    assert late is not None
    assert align([early, late]) == (early, late)
    assert align([]) == ()


@pytest.mark.parametrize(
    "row",
    [
        "not a row",
        ["too", "short"],
        [7, "kernel", 0.0, 1.0, 0, None, False],
        ["k", "unheard of", 0.0, 1.0, 0, None, False],
        ["k", {}, 0.0, 1.0, 0, None, False],
        ["k", "kernel", float("nan"), 1.0, 0, None, False],
        ["k", "kernel", float("inf"), 1.0, 0, None, False],
        ["k", "kernel", -1.0, 1.0, 0, None, False],
        ["k", "kernel", 0.0, -1.0, 0, None, False],
        ["k", "kernel", 10**400, 1.0, 0, None, False],
        ["k", "kernel", True, 1.0, 0, None, False],
        ["k", "kernel", "0", 1.0, 0, None, False],
        ["k", "kernel", 0.0, 1.0, 0.5, None, False],
        ["k", "kernel", 0.0, 1.0, 2**40, None, False],
    ],
)
def test_an_event_that_makes_no_sense_is_dropped_and_counted(row: object) -> None:
    timeline = read_timeline(written(row, ["k", "kernel", 1, 2, 0, None, False]), 0)
    assert timeline is not None
    assert [event.start_us for event in timeline.events] == [1.0]
    assert timeline.dropped_events == 1


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b'{"error": "RuntimeError"}',
        b"\xff\xfe",
        b"[" * 1_000_000,
        b'{"a":' * 200_000,
        b"9" * 100_000,
        written(device="tpu"),
        written(device=[]),
        written(origin_ns=-1),
        written(origin_ns=1.5),
        written(events={}),
        b" " * MAX_BYTES + written(),
    ],
)
def test_what_is_no_recording_is_no_timeline(raw: bytes) -> None:
    assert read_timeline(raw, 0) is None


def test_events_and_names_are_bounded_and_names_are_harmless() -> None:
    row = ["\x1b[31m\u202e\nk" + "x" * 300, "kernel", 0, 1, 0, None, False]
    timeline = read_timeline(written(*[row] * (MAX_EVENTS + 5), dropped=2), 0)
    assert timeline is not None
    assert (len(timeline.events), timeline.dropped_events) == (MAX_EVENTS, 7)
    name = timeline.events[0].name
    assert len(name) == MAX_NAME_CHARS
    assert name.startswith("\ufffd[31m\ufffd k")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ncclSymkDevKernel_AllReduce_RSxLD_AGxST_sum_bf16", EventKind.COMMUNICATION),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWork*)", EventKind.COMMUNICATION),
        ("void nvshmemi_transfer_rma<...>", EventKind.COMMUNICATION),
        ("two_shot_all_reduce_kernel_inplace<float>(float**)", EventKind.COMMUNICATION),
        ("void cub::DeviceReduceKernel<...>", EventKind.COMPUTE),
        ("void cublasLt::splitKreduce_kernel<32, 16>", EventKind.COMPUTE),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n", EventKind.COMPUTE),
        ("triton_red_fused_sum_1", EventKind.COMPUTE),
        ("my_barrier_kernel(int)", EventKind.KERNEL),
        ("gemm_with_nccl_inside(float*)", EventKind.KERNEL),
        ("", EventKind.KERNEL),
    ],
)
def test_a_kernels_name_tells_its_kind_or_nothing(name: str, kind: EventKind) -> None:
    assert kind_of(name, "kernel", is_peer=False, unknown=EventKind.KERNEL) is kind


@given(
    st.lists(
        st.tuples(st.sampled_from(["nccl", "at::f", "mine"]), GRID, st.integers(1, 9)),
        max_size=12,
    )
)
def test_sums_agree_with_counting_every_microsecond(rows: list[tuple[str, int, int]]) -> None:
    raw = written(*([name, "kernel", at, for_, 0, None, False] for name, at, for_ in rows))
    timeline = read_timeline(raw, 0)
    assert timeline is not None

    def busy(*names: str) -> set[int]:
        return {t for name, at, for_ in rows if name in names for t in range(at, at + for_)}

    communication, compute, every = busy("nccl"), busy("at::f"), busy("nccl", "at::f", "mine")
    assert timeline.communication_us == len(communication)
    assert timeline.compute_us == len(compute)
    assert timeline.unknown_us == len(busy("mine"))
    assert timeline.overlap_us == len(communication & compute)
    assert timeline.span_us == (max(every) + 1 - min(every) if every else 0)
    assert timeline.idle_us == timeline.span_us - len(every)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(), inner, max_size=4),
)
ROW = st.tuples(
    JSON, st.sampled_from(["kernel", "memcpy", "op"]) | JSON, JSON, JSON, JSON, JSON, JSON
)


@given(st.binary())
def test_no_bytes_make_it_raise(raw: bytes) -> None:
    assert read_timeline(raw, 0) is None


@given(
    st.sampled_from(DEVICES) | JSON, st.integers() | JSON, st.lists(ROW | JSON, max_size=5) | JSON
)
def test_no_json_makes_it_raise_and_what_it_gives_can_be_sent(
    device: object, origin_ns: object, events: object
) -> None:
    message = {"device": device, "origin_ns": origin_ns, "events": events}
    timeline = read_timeline(json.dumps(message).encode(), 1)
    if timeline is not None:
        sent = json.loads(json.dumps(encode(timeline), allow_nan=False).encode())
        assert decode(RankTimeline, sent) == timeline
