"""Derives from a kernel's source what a host must be able to do: the same for site, command line
and host.

Code shows a need; comments, messages and branches that constants rule out do not. A use that the
source tests first, and goes another way without, is wanted and not needed.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

# Relative: `pkb` carries these modules under another name.
from .asked_first import goes_another_way, is_tried, lines_of, with_aliases
from .dead_branches import without_dead_branches
from .job import Backend, Placement
from .source_text import without_comments, without_messages, without_sentences


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

Place = tuple[str, int]  # the word of a source that shows a need, and its line
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
_ASKS_NVSHMEM = (
    r"(?i:(?:has|have|is|can|use|with|supports?|enable)_?nvshmem"
    r"|nvshmem_?(?:is_)?(?:support|avail|enabled|ok\b))|find_spec\(\s*[\"'][\w.]*nvshmem"
    r"|[!=]=\s*[\"'](?i:nvshmem)"
)
_USES = {
    Ability.NCCL_API: _use(
        r"#\s*include\s*[<\"]nccl\.h|\bnccl(?:CommInit|GetUniqueId|AllReduce|AllGather|ReduceScatter"
        r"|Broadcast|Reduce|Send|Recv|GroupStart|MemAlloc|CommWindow)\w*\s*\("
        r"|\btorch\.cuda\.nccl\b|\bset_backend\(\s*[\"']NCCL[\"']?\)?|\bProcessGroupNCCL\b|\blibnccl\b"
    ),
    Ability.SYMMETRIC_MEMORY: _use(
        r"_symmetric_memory|symm_mem|\b_distributed_c10d\b[^\n]{0,80}\b_SymmetricMemory\b"
    ),
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
    Ability.NVCC: _use(r"\bload_inline\b|\bcompile_cuda_extension\b|\bcpp_extension\b"),
    Ability.THUNDERKITTENS: _use(
        r"#\s*include\s*[<\"](?:kittens\.cuh|prototype\.cuh|pyutils/)|\bTKParallelTensor\b"
        r"|\bparallelkittens_runtime\b"
    ),
    Ability.NVSHMEM: _use(
        r"(?:\b|-l|\blib)nvshmem\w*|\bset_backend\(\s*[\"']NVSHMEM[\"']?\)?", _ASKS_NVSHMEM
    ),
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

_DOTTED, _WORD_CHARS = re.compile(r"\.\w+"), 40


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
    found = set(places(source)) - {Ability.OTHER_RANKS}
    found |= {Ability.NCCL} | _OF_BACKEND.get(backend, frozenset())
    if peer_access:
        found.add(Ability.PEER_ACCESS)
    if multicast:
        found.add(Ability.MULTICAST)
    is_fixed = Ability.THUNDERKITTENS in found and (ranks := fixed_ranks(source))
    if is_fixed and world_size not in ranks:
        found.add(Ability.OTHER_RANKS)
    return frozenset(found) - (_OF_OWN_GPUS if placement is Placement.SHARED else frozenset())


@functools.lru_cache(maxsize=16)
def places(source: str) -> dict[Ability, Place]:
    """Return the needs of a source itself, each with the first word that shows it, and its line."""
    code, guarded = _live(source), without_sentences(source)
    # Multicast can take a host out of service: no branch is thought away, and hardly a message.
    found = {
        ability: _place(guarded if ability is Ability.MULTICAST else code, use)
        for ability, use in _USES.items()
    }
    if fixed := _FIXED_RANKS.search(guarded):
        found[Ability.OTHER_RANKS] = _at(fixed)
    return {ability: place for ability, place in found.items() if place is not None}


def in_words(abilities: Collection[Ability], source: str) -> list[str]:
    """Return the names of abilities for people, each with where a source shows that it needs it, as
    in `NVLink multicast (multimem.ld_reduce, line 41)`."""
    shown = places(source) if abilities else {}
    return [_named(one.label, shown.get(one)) for one in Ability if one in abilities]


def beyond_processors(source: str) -> str | None:
    """Return what a kernel needs and a run without GPUs cannot do, in words; None where it may do
    all. Triton kernels run there: by its interpreter, without inline assembly."""
    code = _live(source)
    found = ((what, _place(code, use)) for what, use in _BEYOND_PROCESSORS.items())
    return next((_named(what, place) for what, place in found if place), None)


def uses_triton(source: str) -> bool:
    """Return whether a source cannot do without Triton."""
    return _place(_live(source), _USES[Ability.TRITON]) is not None


def builds_extensions(source: str) -> bool:
    """Return whether a source cannot do without a compiler."""
    return _place(_live(source), _USES[Ability.NVCC]) is not None


def includes_thunderkittens(source: str) -> bool:
    """Return whether a submission, or its CUDA source, includes ThunderKittens' headers."""
    return _USES[Ability.THUNDERKITTENS].shows.search(source) is not None


def fixed_ranks(source: str) -> frozenset[int]:
    """Return the numbers of ranks that a ParallelKittens source is written for; none where it takes
    any."""
    code = without_comments(source)
    lines = lines_of(code)
    if _GIVEN_RANKS.search(code) or goes_another_way(lines, _ASKS_RANKS):
        return frozenset()
    found = _FIXED_RANKS.findall("\n".join(lines))
    return frozenset(int(number or defined) for number, defined in found)


def _live(source: str) -> str:
    return without_dead_branches(without_messages(source))


def _named(name: str, place: Place | None) -> str:
    return f"{name} ({place[0]}, line {place[1]})" if place else name


def _place(code: str, use: _Use) -> Place | None:
    """Return where code shows a need; None where it does not, or only wants it."""
    shown = use.shows.search(code)
    if shown is None:
        return None
    lines = lines_of(code)
    if use.asks is not None and goes_another_way(lines, with_aliases(lines, use.asks)):
        return None
    return None if is_tried(lines, use.shows) else _at(shown)


def _at(shown: re.Match[str]) -> Place:
    """Return the word that was found, with what a dot adds, and its line."""
    more = _DOTTED.match(shown.string, shown.end())
    word = " ".join((shown[0] + (more[0] if more else "")).split()).strip("\"'(=,;:[ ")
    return word[:_WORD_CHARS], shown.string.count("\n", 0, shown.end()) + 1
