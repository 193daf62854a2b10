"""How bytes move: what source, machine code and trace show, and what they do not."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.messages.codec import decode, encode
from evaluator.messages.profile import Evidence, Mechanism, RankTimeline, Tag
from evaluator.messages.source_text import without_comments
from evaluator.profiling.mechanism import (
    FAMILIES,
    instruction_counts,
    mechanisms,
    reaches_peers,
    read_instructions,
    uses_nccl,
)
from evaluator.profiling.timeline import read_timeline

TRACES = Path(__file__).parent / "traces"
SOURCE_LIMIT_BYTES = 256 << 10

NCCL = "import torch.distributed as dist\n\ndef solution(x):\n    dist.all_reduce(x)\n"
PEERS = '''
import torch.distributed._symmetric_memory as symm_mem
SRC = r"""
__global__ void k(float** peers) {  // no multimem here
  asm volatile("st.release.sys.global.u32 [%0], 1;" :: "l"(peers[0]));
  /* cp.async.bulk */
}
"""
def solution(x):
    ext.k(symm_mem.rendezvous(x, g).buffer_ptrs_dev)
'''
ENGINE = "peer = handle.get_buffer(1, x.shape, x.dtype)\nhandle.get_buffer(0, s, d).copy_(x)\n"


def timeline_of(name: str) -> RankTimeline:
    timeline = read_timeline((TRACES / name).read_bytes(), 0)
    assert timeline is not None
    return timeline


def shown(found: tuple[Mechanism, ...]) -> set[tuple[str, str]]:
    return {(mechanism.tag.value, mechanism.evidence.value) for mechanism in found}


def by_source(source: str) -> set[str]:
    return {tag for tag, evidence in shown(mechanisms(source, {}, ())) if evidence == "source"}


def test_nccl_is_shown_by_its_kernels_and_by_the_source() -> None:
    found = mechanisms(NCCL, {}, [timeline_of("nccl-overlap.json")])
    assert found == (
        Mechanism(
            tag=Tag.NCCL,
            evidence=Evidence.TRACE,
            detail="1 x ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        ),
        Mechanism(tag=Tag.NCCL, evidence=Evidence.SOURCE, detail="line 4: dist.all_reduce("),
    )


def test_uses_nccl_believes_the_trace_alone() -> None:
    assert uses_nccl([timeline_of("copy-engine.json"), timeline_of("nccl-overlap.json")])
    assert not uses_nccl([timeline_of("symmetric-memory.json"), timeline_of("copy-engine.json")])
    assert not uses_nccl([timeline_of("gloo-rank0.json")])
    assert not uses_nccl([])


def test_the_same_collective_is_gloo_on_a_cpu() -> None:
    found = mechanisms(NCCL, {}, [timeline_of("gloo-rank0.json"), timeline_of("gloo-rank1.json")])
    assert shown(found) == {("gloo", "trace"), ("gloo", "source")}


def test_kernels_on_symmetric_memory_are_known_by_name() -> None:
    found = mechanisms("", {}, [timeline_of("symmetric-memory.json")])
    assert shown(found) == {
        (tag, "trace")
        for tag in ("sm_load_store", "multimem", "signal_pads", "symmetric_memory", "cuda_graph")
    }


def test_copies_between_gpus_are_the_copy_engine() -> None:
    found = mechanisms(ENGINE, {}, [timeline_of("copy-engine.json")])
    assert shown(found) == {("copy_engine", "trace"), ("copy_engine", "source")}
    assert found[0].detail == "2 x Memcpy PtoP (Device -> Device)"


def test_loads_and_stores_beside_the_copy_engine_may_be_local() -> None:
    counts = {"global_load": 5, "global_store": 5}
    with_copies = mechanisms(ENGINE, counts, [timeline_of("copy-engine.json")])
    assert ("sm_load_store", "sass") not in shown(with_copies)
    assert ("sm_load_store", "sass") in shown(mechanisms(ENGINE, counts, ()))


def test_machine_code_counts_only_with_a_way_to_a_peer() -> None:
    counts = dict.fromkeys(FAMILIES, 3) | {"multimem": 0}
    local = mechanisms("def solution(x):\n    return x + 1\n", counts, ())
    assert local == ()
    assert ("tma", "sass") in shown(mechanisms(PEERS, counts, ()))
    assert ("signal_pads", "sass") in shown(mechanisms(PEERS, counts, ()))


def test_where_tma_could_have_moved_the_bytes_plain_loads_say_nothing() -> None:
    plain = {"global_load": 9, "global_store": 9}
    assert ("sm_load_store", "sass") in shown(mechanisms(PEERS, plain, ()))
    for other in ("tma_store", "multimem"):
        found = shown(mechanisms(PEERS, plain | {other: 1}, ()))
        assert ("sm_load_store", "sass") not in found


@pytest.mark.parametrize(
    ("source", "tags"),
    [
        (NCCL, {"nccl"}),
        (PEERS, {"signal_pads", "symmetric_memory"}),
        (ENGINE, {"copy_engine"}),
        ("from torch.distributed import (\n    all_gather_into_tensor,\n)", {"nccl"}),
        ("funcol.all_to_all_single(x, None, None, g)", {"nccl"}),
        (
            "torch.ops.symm_mem.one_shot_all_reduce(x, 's', g)",
            {"sm_load_store", "symmetric_memory"},
        ),
        ("torch.ops.symm_mem.multimem_all_reduce_(x, 's', g)", {"multimem", "symmetric_memory"}),
        ("p = h.buffer_ptrs\nv = tl.load(p)", {"sm_load_store"}),
        ("v = tl.load(p)", set()),
        ("p = h.buffer_ptrs\nd = tl.make_tensor_descriptor(p)", {"tma"}),
        ("d = tl.make_tensor_descriptor(p)", set()),
        ("cudaMemcpyPeerAsync(a, 0, b, 1, n, s)", {"copy_engine"}),
        ("torch.compile(f, mode='reduce-overhead')", {"cuda_graph"}),
        ("import nvshmem.core", {"nvshmem"}),
        ("y = x.scatter(0, i, s)\nz = x.all_reduce", set()),
        ("def all_reduce(x): ...\nall_reduce(x)", set()),
        ("# dist.all_reduce(x) and multimem\nx = 1", set()),
        ('"""Instead of dist.all_reduce(x): symm_mem."""\nx = 1', set()),
        ("#!/x\n# y\n'''dist.all_reduce(x)'''\nx = 1", set()),
        ('def f():\n    r"""With multimem."""\n    return 1', set()),
        ('S = """\n// multimem.st\n/* multimem.ld_reduce\n*/"""', set()),
        ('S = """\nmultimem.ld_reduce // x\n"""', {"multimem"}),
        ("u = 'http://x#y'; dist.all_reduce(x)", {"nccl"}),
        ("n = a // b; dist.all_reduce(x)", {"nccl"}),
    ],
)
def test_the_source_shows_what_it_does_and_not_what_it_tells(source: str, tags: set[str]) -> None:
    assert by_source(source) == tags


def test_lines_keep_their_numbers_without_comments() -> None:
    source = '"""Doc\nmore."""\n# comment\nS = """/* a\nb */ c"""\ndist.all_reduce(x)\n'
    assert without_comments(source).count("\n") == source.count("\n")
    assert mechanisms(source, {}, ())[0].detail == "line 6: dist.all_reduce("


@pytest.mark.parametrize(
    ("source", "reaches"),
    [
        (PEERS, True),
        (ENGINE, True),
        ("cudaIpcOpenMemHandle(&p, h, 1)", True),
        ("torch.ops.symm_mem.one_shot_all_reduce(x, 's', g)", True),
        ("from utils.parallelkittens_runtime import get_or_create_parallel_tensor", True),
        (NCCL, False),
        ("# symm_mem would be faster\n" + NCCL, False),
    ],
)
def test_only_some_sources_have_a_way_to_a_peers_memory(source: str, reaches: bool) -> None:
    assert reaches_peers(source) is reaches


def test_instructions_of_a_disassembly_are_counted_by_family() -> None:
    """Kernels of our own in PTX for each family, through nvcc 13.0 for sm_90a and cuobjdump."""
    counts = instruction_counts((TRACES / "sm90a.sass").read_text().splitlines())
    assert counts == {
        "global_load": 16,
        "global_store": 10,
        "system_load": 2,
        "system_store": 3,
        "system_atomic": 4,
        "system_fence": 5,
        "tma_load": 2,
        "tma_store": 4,
        "multimem": 1,
        "tensor_core": 3,
    }


@pytest.mark.parametrize(
    ("mnemonic", "families"),
    [
        ("LDG.E.128", {"global_load"}),
        ("LDGSTS.E.BYPASS.128", {"global_load"}),
        ("LD.E.64.STRONG.SYS", {"global_load", "system_load"}),
        ("ST.E.STRONG.GPU", {"global_store"}),
        ("ATOMG.E.CAS.STRONG.SYS", {"system_atomic"}),
        ("REDG.E.ADD.STRONG.GPU", set()),
        ("MEMBAR.SC.GPU", set()),
        ("MEMBAR.SC.SYS", {"system_fence"}),
        ("UBLKCP.S.G", {"tma_load"}),
        ("UBLKCP.G.S", {"tma_store"}),
        ("UTMAREDG.2D.ADD", {"tma_store"}),
        ("QGMMA.64x128x32.F32.E4M3.E4M3", {"tensor_core"}),
        ("UTCHMMA", {"tensor_core"}),
        ("HFMA2.MMA", set()),
        ("LDC.64", set()),
        ("STS.128", set()),
    ],
)
def test_a_mnemonic_belongs_to_its_families(mnemonic: str, families: set[str]) -> None:
    counts = instruction_counts([f"        /*0a10*/              @!P0 {mnemonic} R2, R4 ;"])
    assert {family for family, count in counts.items() if count} == families


def test_counts_that_make_no_sense_are_left_out() -> None:
    written = {"tma_load": 3, "multimem": -1, "tensor_core": True, "global_load": 1e9, "new": 4}
    assert read_instructions(json.dumps({"instructions": written}).encode()) == {"tma_load": 3}
    assert read_instructions(b'{"error": "cuobjdump is not installed"}') is None
    assert read_instructions(b"[" * 100_000) is None


@given(st.binary())
def test_no_bytes_are_counts_by_accident(raw: bytes) -> None:
    assert read_instructions(raw) is None


@given(st.text(alphabet="\"'#\\\n:/* ax=rdist.all_reduce(", max_size=200))
def test_any_source_can_be_read(source: str) -> None:
    found = mechanisms(source, {}, ())
    assert without_comments(source).count("\n") == source.count("\n")
    assert tuple(decode(Mechanism, encode(mechanism)) for mechanism in found) == found


@pytest.mark.parametrize(
    "unit", ['"\\', "'", '"', '"""', "/*", ':\n"""', "\n#", "dist .", "get_buffer(", "ld.", ") "]
)
def test_a_source_made_to_be_slow_is_read_in_time(unit: str) -> None:
    """Linear time is half a second here; quadratic would be minutes."""
    source = unit * (SOURCE_LIMIT_BYTES // len(unit))
    began = time.process_time()
    mechanisms('X = """ ' + source, {}, ())
    mechanisms(source, {}, ())
    assert time.process_time() - began < 10
