"""Derives from a kernel's source what a host must be able to do: the same for site, command line
and host.

A use that the source tests first, and goes another way without, is wanted and not needed.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from enum import StrEnum

# Relative: `pkb` carries these modules under another name.
from .job import Backend, Placement
from .source_text import without_comments


class Ability(StrEnum):
    """Names what a host with GPUs can do for kernels, and another may not."""

    NCCL = "nccl"
    NCCL_API = "nccl_api"
    PEER_ACCESS = "peer_access"
    SYMMETRIC_MEMORY = "symmetric_memory"
    MULTICAST = "multicast"
    TRITON = "triton"
    NVCC = "nvcc"
    THUNDERKITTENS = "thunderkittens"
    NVSHMEM = "nvshmem"
    NCCL_DEVICE_API = "nccl_device_api"
    HIP = "hip"
    OTHER_RANKS = "other_ranks"

    @property
    def label(self) -> str:
        """Return its name for people, as in `needs NVLink multicast`."""
        return _LABELS[self]


_LABELS = {
    Ability.NCCL: "NCCL",
    Ability.NCCL_API: "NCCL itself, past torch.distributed",
    Ability.PEER_ACCESS: "GPUs that reach each other's memory",
    Ability.SYMMETRIC_MEMORY: "torch's symmetric memory",
    Ability.MULTICAST: "NVLink multicast",
    Ability.TRITON: "Triton",
    Ability.NVCC: "nvcc",
    Ability.THUNDERKITTENS: "ThunderKittens",
    Ability.NVSHMEM: "NVSHMEM",
    Ability.NCCL_DEVICE_API: "NCCL's device API",
    Ability.HIP: "AMD GPUs (HIP)",
    Ability.OTHER_RANKS: "the number of ranks that its source fixes (NUM_DEVICES)",
}

# What is between GPUs: ranks that share one cannot have it, whatever their host has.
BETWEEN_GPUS = frozenset(
    {Ability.NCCL_API, Ability.MULTICAST, Ability.NVSHMEM, Ability.NCCL_DEVICE_API}
)
# What torch and NCCL need for ranks on GPUs of their own.
_OF_OWN_GPUS = frozenset({Ability.NCCL, Ability.PEER_ACCESS})


@dataclass(frozen=True, kw_only=True)
class _Use:
    """Describes how a source shows a need, and how it asks first whether the host has it."""

    shows: re.Pattern[str]
    asks: re.Pattern[str] | None = None


def _use(shows: str, asks: str | None = None) -> _Use:
    return _Use(
        shows=re.compile(shows, re.MULTILINE),
        asks=re.compile(asks) if asks else None,
    )


_ASKS_MULTICAST = (
    r"multicast_ptr|(?:has|is|can|supports?)_\w{0,40}(?:multicast|multimem|nvls)|MULTICAST_SUPPORTED"
    r"|(?:multicast|multimem|nvls)_?(?:is_)?(?:support|avail|ok\b)"
)
_USES = {
    Ability.NCCL_API: _use(
        r"#\s*include\s*[<\"]nccl\.h|\bnccl(?:CommInit|GetUniqueId|AllReduce|AllGather|ReduceScatter"
        r"|Broadcast|Reduce|Send|Recv|GroupStart|MemAlloc|CommWindow)\w*\s*\("
        r"|\btorch\.cuda\.nccl\b|\bset_backend\(\s*[\"']NCCL|\bProcessGroupNCCL\b|\blibnccl\b"
    ),
    Ability.SYMMETRIC_MEMORY: _use(r"_symmetric_memory|symm_mem"),
    Ability.MULTICAST: _use(
        r"\bmulticast_ptr\b|\bmultimem\w*|\bcuMulticast(?:Create|AddDevice|Bind)\w*"
        # ParallelKittens: barriers are multicast tensors, others unless they say that they are not.
        r"|\bmulticast\s*=\s*True\b|\bget_or_create_barrier\s*\(|\bbarrier_t\b"
        r"|\b(?:get_or_)?create_parallel_tensor\s*\((?![^;\n]{0,200}?(?:\n[^;\n]{0,200}?){0,8}?"
        r"\bmulticast\s*=)"
        r"|\bNCCL_NVLS_ENABLE\b[\"'\]\s,=:(]{1,9}[12]"
        r"|\bTORCH_SYMM_MEM_DISABLE_MULTICAST\b[\"'\]\s,=:(]{1,9}0",
        _ASKS_MULTICAST,
    ),
    Ability.TRITON: _use(r"^[ \t]*(?:import|from)[ \t]+triton\b"),
    Ability.NVCC: _use(r"\bload_inline\b|\bcompile_cuda_extension\b"),
    Ability.THUNDERKITTENS: _use(
        r"#\s*include\s*[<\"](?:kittens\.cuh|prototype\.cuh|pyutils/)|\bTKParallelTensor\b"
        r"|\bparallelkittens_runtime\b"
    ),
    Ability.NVSHMEM: _use(r"\bnvshmem\w*|\bset_backend\(\s*[\"']NVSHMEM", r"is_nvshmem_available"),
    Ability.NCCL_DEVICE_API: _use(r"\bnccl_device\b|\bncclDevComm\w*|\bncclGin\w*|\bncclLsa\w+"),
    Ability.HIP: _use(
        r"<hip/hip_\w+|\bhipcc\b|\bhip(?:Malloc|Memcpy|LaunchKernel|Stream)\w*",
        r"__HIP\w{0,40}__|version\.hip",
    ),
}
# What a run on processors alone cannot do, in the order in which it is said.
_BEYOND_PROCESSORS = {
    "CUDA code": _use(
        r"\b__global__\b|\bcuda_sources\s*=(?!\s*(?:None|\[\]|[\"']{2}))"
        r"|\bcompile_cuda_extension\s*\(|\bwith_cuda\s*=\s*True\b|\bcuModuleLoad\w*|\bnvrtc\w*"
    ),
    **{_LABELS[name]: _USES[name] for name in (Ability.NVSHMEM, Ability.HIP)},
    "inline assembly": _use(
        r"\binline_asm_elementwise\b|\bextern_elementwise\b|\blibdevice\b"
        r"|^[ \t]*(?:import|from)[ \t]+utils\.triton_utils\b"
    ),
    "a GPU": _use(
        r"\btorch\.cuda\.(?!is_available\b|device_count\b|amp\b)\w+"
        r"|(?:\bdevice\s*=|\bdevice\(|\.to\()\s*f?[\"']cuda\b"
        r"|\.cuda\(|\bassert\b[^\n]{0,80}\bis_cuda\b|\bnot\s+[\w.]{1,60}\.is_cuda\b"
        r"|\bops\.symm_mem\b|\bget_symm_mem_workspace\b|[\"']nccl[\"']",
        r"cuda\.is_available|is_cuda|device\.type",
    ),
}
_OF_BACKEND = {
    Backend.CUDA: frozenset({Ability.NVCC}),
    Backend.PARALLELKITTENS: frozenset({Ability.NVCC, Ability.THUNDERKITTENS}),
    Backend.TRITON: frozenset({Ability.TRITON}),
}
_FIXED_RANKS = re.compile(
    r"\bNUM_DEVICES\s*(?::\s*int\s*)?=\s*(\d{1,2})\s*(?:;|$)|#\s*define\s+NUM_DEVICES\s+(\d{1,2})\b",
    re.MULTILINE,
)
# Given from outside, or asked: then the source has a way for other numbers of ranks.
_ASKS_RANKS = re.compile(r"\bworld\w{0,20}(?:\(\))?\s*[!=]=\s*(?:NUM_DEVICES|[2-9])")
_GIVEN_RANKS = re.compile(r"-D\s?NUM_DEVICES|#\s*ifndef\s+NUM_DEVICES")

# Between `if` and what it asks: no end of the condition.
_IF = r"(?:\b(?:if|elif|bool)\b|#\s*ifn?def\b)(?:(?!\)\s*(?:\{|\w+\s*\()|[:;]|\belse\b).){0,100}?"
_IS_NONE = r"[\w.]{0,40}\)?\s*(?:[!=]=|>|\bis(?:\s+not)?\b)\s*(?:0|None|nullptr)\b"
_DEMAND = re.compile(r"\b(?:raise|assert|throw|abort|exit|TORCH_CHECK\w*|static_assert)\b")
_ASSIGNED = re.compile(r"^\s*([\w.]{1,99})\s*(?::\s*[\w.]{1,99}\s*)?=(?!=)[^=]*$")
_MOST_ALIASES = 16
_LINE_CHARS = 200
_BLOCK_LINES = 4


def needs(
    source: str,
    backend: Backend,
    *,
    world_size: int,
    peer_access: bool = True,
    multicast: bool = False,
    placement: Placement = Placement.FULL,
) -> frozenset[Ability]:
    """Return what a host with GPUs must have to judge a kernel on `world_size` ranks.

    `peer_access` and `multicast` are what its problem requires. Nothing between GPUs is needed
    where ranks share one but what the source itself names, and of that no host has BETWEEN_GPUS.
    """
    code = without_comments(source)
    found = {ability for ability, use in _USES.items() if _needs(code, use)}
    found |= {Ability.NCCL} | _OF_BACKEND.get(backend, frozenset())
    if peer_access:
        found.add(Ability.PEER_ACCESS)
    if multicast:
        found.add(Ability.MULTICAST)
    is_fixed = Ability.THUNDERKITTENS in found and (ranks := fixed_ranks(code))
    if is_fixed and world_size not in ranks:
        found.add(Ability.OTHER_RANKS)
    return frozenset(found) - (_OF_OWN_GPUS if placement is Placement.SHARED else frozenset())


def beyond_processors(source: str) -> str | None:
    """Return what a kernel needs and a run without GPUs cannot do, in words; None where it may do
    all. Triton kernels run there: by its interpreter, without inline assembly."""
    code = without_comments(source)
    return next((what for what, use in _BEYOND_PROCESSORS.items() if _needs(code, use)), None)


def uses_triton(source: str) -> bool:
    """Return whether a source cannot do without Triton."""
    return _needs(without_comments(source), _USES[Ability.TRITON])


def builds_extensions(source: str) -> bool:
    """Return whether a source cannot do without a compiler."""
    return _needs(without_comments(source), _USES[Ability.NVCC])


def includes_thunderkittens(source: str) -> bool:
    """Return whether a submission, or its CUDA source, includes ThunderKittens' headers."""
    return _USES[Ability.THUNDERKITTENS].shows.search(source) is not None


def fixed_ranks(source: str) -> frozenset[int]:
    """Return the numbers of ranks that a ParallelKittens source is written for; none where it takes
    any."""
    lines = _lines(without_comments(source))
    if _GIVEN_RANKS.search(source) or _goes_another_way(lines, _ASKS_RANKS):
        return frozenset()
    found = _FIXED_RANKS.findall("\n".join(lines))
    return frozenset(int(number or defined) for number, defined in found)


def _needs(code: str, use: _Use) -> bool:
    if use.shows.search(code) is None:
        return False
    lines = _lines(code)
    if use.asks is not None and _goes_another_way(lines, _with_aliases(lines, use.asks)):
        return False
    return not _is_tried(lines, use.shows)


def _lines(code: str) -> list[str]:
    """Return the lines, each with what an honest one has: sources are hostile."""
    return [line[:_LINE_CHARS] for line in code.split("\n")]


def _with_aliases(lines: list[str], asks: re.Pattern[str]) -> re.Pattern[str]:
    """Return a pattern that also finds the names that hold an answer."""
    names = {
        name[1].rpartition(".")[2]
        for line in lines
        if (asked := asks.search(line)) and (name := _ASSIGNED.search(line[: asked.start()]))
    }
    aliases = [rf"\b{re.escape(name)}\b" for name in sorted(names)[:_MOST_ALIASES] if name]
    return re.compile("|".join([asks.pattern, *aliases]))


def _goes_another_way(lines: list[str], asks: re.Pattern[str]) -> bool:
    """Return whether a condition asks, and does not merely demand."""
    condition = re.compile(rf"{_IF}(?:{asks.pattern})|(?:{asks.pattern}){_IS_NONE}")
    return any(
        asks.search(line) and condition.search(line) and not _demands(lines, at)
        for at, line in enumerate(lines)
    )


def _demands(lines: list[str], at: int) -> bool:
    """Return whether a line, or the first lines of its block, give up."""
    following = [line for line in lines[at + 1 : at + 1 + 2 * _BLOCK_LINES] if line.strip()]
    block = itertools.takewhile(lambda line: _indent(line) > _indent(lines[at]), following)
    return any(_DEMAND.search(line) for line in [lines[at], *list(block)[:_BLOCK_LINES]])


def _is_tried(lines: list[str], shows: re.Pattern[str]) -> bool:
    """Return whether some use stands in a `try` whose `except` goes on without it."""
    tries: list[_Try] = []
    for at, line in enumerate(lines):
        text, indent = line.strip(), _indent(line)
        while text and tries and indent <= tries[-1].indent:
            ended = tries.pop()
            if ended.has_use and text.startswith("except") and not _demands(lines, at):
                return True
            if tries:
                tries[-1].has_use |= ended.has_use
        if tries and shows.search(line):
            tries[-1].has_use = True
        if text == "try:":
            tries.append(_Try(indent=indent))
    return False


@dataclass(kw_only=True)
class _Try:
    indent: int
    has_use: bool = False


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
