"""Finds how a kernel moves bytes between GPUs: a closed list of tags, each with what shows it.

`source` means that the text names it (comments left out), `sass` that the machine code which the
ranks built holds its instructions, `trace` that it was seen at work. The last two are what ranks
say of themselves, and nobody has to believe it: all of this annotates, nothing decides a verdict.

Machine code cannot tell a load from a peer's memory from a load of one's own, so its loads, stores,
TMA copies and signals count only where the source has a way to a peer's memory. A multimem store is
an ordinary store to a multicast address; machine code shows multimem by its loads alone.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from evaluator.messages.profile import (
    EventKind,
    Evidence,
    Mechanism,
    RankTimeline,
    Tag,
    TimelineEvent,
)
from evaluator.messages.source_text import without_comments
from evaluator.messages.text import plain_text
from evaluator.profiling.timeline import SYMMETRIC_MEMORY

MAX_DETAIL_CHARS = 80
MAX_COUNT = 2**53


_NAMES = (
    r"(?:all_reduce|all_gather|reduce_scatter|all_to_all|broadcast|isend|irecv|send|recv|gather"
    r"|scatter|reduce|batch_isend_irecv|P2POp)\w*"
)
_COLLECTIVE = (
    rf"\b(?:dist|distributed|c10d|funcol|functional|_functional_collectives)\s*\.\s*{_NAMES}\s*\("
    rf"|from torch\.distributed[\w.]* import (?:\([\w,\s]{{0,200}}|[\w, ]{{0,200}})\b{_NAMES}"
)
_COLLECTIVE_BY_NAME = (
    r"\bnccl(?:AllReduce|AllGather|ReduceScatter|Broadcast|Reduce|AlltoAll|Send|Recv)\b"
)
_PEER_TENSOR = r"\bget_(?:buffer|remote_tensor)\s*\("
_ADDRESSES = (
    r"\b(?:buffer_ptrs(?:_dev)?|multicast_ptr|cudaIpcOpenMemHandle|cuMemImportFromShareableHandle"
    r"|cudaDeviceEnablePeerAccess|cuCtxEnablePeerAccess|nvshmem_ptr|ncclGet\w*Pointer|TKParallelTensor"
    r"|parallelkittens|pgl|get_or_create_parallel_tensor)\b"
)
_REACH = (
    rf"{_ADDRESSES}|{_PEER_TENSOR}|\b(?:symm_mem|\w*symmetric_memory|_SymmetricMemory|cudaIpc\w+"
    r"|nvshmem\w*|multimem\w*|cudaMemcpyPeer\w*|cuMemcpyPeer\w*|rebuild_cuda_tensor|reduce_tensor"
    r"|_new_shared_cuda|_share_cuda_|ncclDevComm\w*|ncclWindow\w*)"
)
_SOURCE: dict[Tag, str] = {
    Tag.NVSHMEM: r"\bnvshmem\w*",
    Tag.COPY_ENGINE: r"\bcu(?:da)?MemcpyPeer\w*"
    r"|\bget_(?:buffer|remote_tensor)\s*\([^\n]{0,200}\)\s*\.copy_\("
    r"|\.copy_\([^\n]{0,200}\bget_(?:buffer|remote_tensor)\s*\(",
    Tag.SM_LOAD_STORE: r"\bsymm_mem\s*\.\s*(?:one|two)_shot_\w+"
    r"|\b(?:ld|st)\.(?:\w+\.){0,4}sys\.(?:\w+\.){0,4}v[248]\b",
    Tag.MULTIMEM: r"\bmultimem\w*|\bmulticast_ptr\b",
    Tag.SIGNAL_PADS: r"\bsignal_pad\w*|\bput_signal\b|\bwait_signal\b"
    r"|\b(?:ld|st|red|atom)\.(?:\w+\.){0,3}(?:acquire|release|acq_rel)\.sys\b",
    Tag.SYMMETRIC_MEMORY: r"\bsymm_mem\b|\b_?symmetric_memory\b|\b_SymmetricMemory\b",
    Tag.CUDA_GRAPH: r"\bCUDAGraph\b|\bcuda\.graph\s*\(|\bmake_graphed_callables\b"
    r"|\bcu(?:da)?GraphLaunch\b|reduce-overhead",
}
_WITH_REACH: dict[Tag, str] = {
    Tag.SM_LOAD_STORE: r"\btl\.(?:load|store)\b",
    Tag.TMA: r"\bcp\.(?:reduce\.)?async\.bulk\b|\bcuTensorMapEncode\w*|\btma::\w+"
    r"|\bmake_tensor_descriptor\b|\bTensorDescriptor\b",
}

# Instructions of machine code, by family. Learned from what nvcc 13.0 makes for sm_90a.
_FAMILIES: dict[str, str] = {
    "global_load": r"(?:LDG|LD|LDGSTS)(?:\.|$)",
    "global_store": r"(?:STG|ST)(?:\.|$)",
    "system_load": r"(?:LDG|LD)\..*\bSYS\b",
    "system_store": r"(?:STG|ST)\..*\bSYS\b",
    "system_atomic": r"(?:ATOM|ATOMG|RED|REDG)\..*\bSYS\b",
    "system_fence": r"MEMBAR\..*\bSYS\b",
    "tma_load": r"UTMALDG(?:\.|$)|UBLKCP\.S",
    "tma_store": r"(?:UTMASTG|UTMAREDG|UBLKRED)(?:\.|$)|UBLKCP\.G",
    "multimem": r"LDGMC(?:\.|$)",
    "tensor_core": r"(?:UTC)?[A-Z]{1,2}MMA(?:\.|$)",
}
FAMILIES = tuple(_FAMILIES)
_FAMILY_PATTERNS = {family: re.compile(pattern) for family, pattern in _FAMILIES.items()}
_INSTRUCTION = re.compile(r"\s*/\*[0-9a-f]{4,6}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9]*(?:\.\w+)*)")


def mechanisms(
    source: str, instructions: Mapping[str, int], timelines: Sequence[RankTimeline]
) -> tuple[Mechanism, ...]:
    """Return every tag that shows, in the order of `Tag`, with each kind of evidence, strongest
    first."""
    code = without_comments(source)
    found = [*_in_trace(timelines), *_in_sass(code, instructions, timelines)]
    found += _in_source(code, timelines)
    tags, kinds = list(Tag), list(Evidence)
    return tuple(sorted(found, key=lambda m: (tags.index(m.tag), kinds.index(m.evidence))))


def uses_nccl(timelines: Iterable[RankTimeline]) -> bool:
    """Return whether a kernel of NCCL was seen on some rank. A rank could hide one."""
    return any(_is_nccl(event) for timeline in timelines for event in timeline.events)


def reaches_peers(source: str) -> bool:
    """Return whether the source names a way for its own code to another GPU's memory."""
    return re.search(_REACH, without_comments(source)) is not None


def instruction_counts(sass: Iterable[str]) -> dict[str, int]:
    """Count the instructions of each family in the lines of a disassembly; one may be in two."""
    found = Counter(match[1] for line in sass if (match := _INSTRUCTION.match(line)))
    return {
        family: sum(times for name, times in found.items() if pattern.match(name))
        for family, pattern in _FAMILY_PATTERNS.items()
    }


def read_instructions(raw: bytes) -> Mapping[str, int] | None:
    """Read the counts that a rank wrote of what it built; None where it says none. Untrusted
    bytes."""
    try:
        message = json.loads(raw[: 64 << 10].decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    given = message.get("instructions") if isinstance(message, dict) else None
    if not isinstance(given, dict):
        return None
    counts = {family: given.get(family, 0) for family in FAMILIES}
    return {f: n for f, n in counts.items() if type(n) is int and 0 < n <= MAX_COUNT}


def _in_trace(timelines: Sequence[RankTimeline]) -> Iterator[Mechanism]:
    names: dict[Tag, list[str]] = {}
    for timeline in timelines:
        for event in timeline.events:
            for tag in _tags_of(event):
                names.setdefault(tag, []).append(event.name)
    for tag, seen in names.items():
        yield Mechanism(tag=tag, evidence=Evidence.TRACE, detail=f"{len(seen)} x {_cut(seen[0])}")
    if launches := sum(timeline.graph_launches for timeline in timelines):
        detail = f"{launches} x cudaGraphLaunch"
        yield Mechanism(tag=Tag.CUDA_GRAPH, evidence=Evidence.TRACE, detail=detail)


def _tags_of(event: TimelineEvent) -> tuple[Tag, ...]:
    if event.kind is not EventKind.COMMUNICATION:
        return ()
    if _is_nccl(event):
        return (Tag.NCCL,)
    if _is_peer_copy(event):
        return (Tag.COPY_ENGINE,)
    if event.name.startswith("gloo:"):
        return (Tag.GLOO,)
    if "nvshmem" in event.name:
        return (Tag.NVSHMEM,)
    kernel = SYMMETRIC_MEMORY.search(event.name)
    if kernel is None:
        return ()
    if kernel[0].startswith("multimem"):
        return (Tag.MULTIMEM, Tag.SYMMETRIC_MEMORY)
    if kernel[0].startswith(("one", "two")):
        return (Tag.SM_LOAD_STORE, Tag.SYMMETRIC_MEMORY)
    return (Tag.SIGNAL_PADS, Tag.SYMMETRIC_MEMORY)


def _is_nccl(event: TimelineEvent) -> bool:
    is_communication = event.kind is EventKind.COMMUNICATION
    return is_communication and event.name.removeprefix("void ").startswith("nccl")


def _is_peer_copy(event: TimelineEvent) -> bool:
    return event.kind is EventKind.COMMUNICATION and event.name.startswith("Memcpy ")


def _in_sass(
    code: str, counts: Mapping[str, int], timelines: Sequence[RankTimeline]
) -> Iterator[Mechanism]:
    """Yield what the built code shows of each tag. Every kernel loads and stores: that says
    something only where nothing else can have moved the bytes."""
    tma = counts.get("tma_load", 0) + counts.get("tma_store", 0)
    multimem = counts.get("multimem", 0)
    plain = counts.get("global_load", 0) + counts.get("global_store", 0)
    signals = counts.get("system_atomic", 0) + counts.get("system_fence", 0)
    if multimem:
        yield _built(Tag.MULTIMEM, multimem, "multimem loads")
    if not _has_addresses(code, timelines):
        return
    if tma:
        yield _built(Tag.TMA, tma, "TMA and bulk copies")
    if plain and not tma and not multimem:
        yield _built(Tag.SM_LOAD_STORE, plain, "global loads and stores")
    if signals:
        yield _built(Tag.SIGNAL_PADS, signals, "system-wide atomics and fences")


def _built(tag: Tag, count: int, what: str) -> Mechanism:
    return Mechanism(tag=tag, evidence=Evidence.SASS, detail=f"{count} {what}")


def _has_addresses(code: str, timelines: Sequence[RankTimeline]) -> bool:
    """Return whether its own kernels can hold a peer's address. A peer's buffer as a tensor may be
    for the copy engine alone, where that was seen at work."""
    if re.search(_ADDRESSES, code):
        return True
    by_engine = any(_is_peer_copy(event) for line in timelines for event in line.events)
    return not by_engine and re.search(_PEER_TENSOR, code) is not None


def _in_source(code: str, timelines: Sequence[RankTimeline]) -> Iterator[Mechanism]:
    on_cpu = bool(timelines) and all(timeline.device == "cpu" for timeline in timelines)
    patterns = dict(_SOURCE)
    if on_cpu:
        patterns[Tag.GLOO] = _COLLECTIVE
    else:
        patterns[Tag.NCCL] = f"{_COLLECTIVE}|{_COLLECTIVE_BY_NAME}"
    if _has_addresses(code, timelines):
        for tag, pattern in _WITH_REACH.items():
            patterns[tag] = f"{patterns[tag]}|{pattern}" if tag in patterns else pattern
    for tag, pattern in patterns.items():
        if found := re.search(pattern, code):
            line = code.count("\n", 0, found.start()) + 1
            detail = f"line {line}: {_cut(' '.join(found[0].split()))}"
            yield Mechanism(tag=tag, evidence=Evidence.SOURCE, detail=detail)


def _cut(text: str) -> str:
    return plain_text(text, MAX_DETAIL_CHARS)
