"""Names that published Triton kernels import: threads, and barriers between GPUs.

Each rank has a signal pad: zeroed words of 32 bits that all ranks reach. A sender takes a word from
0 to 1, its receiver takes it back to 0, and both wait until they can: a pad is zero again after
each barrier. None of this orders other memory traffic but as `sem` says: `relaxed` does not,
`acq_rel` makes what was written before the barrier visible after it.
"""

from __future__ import annotations

import triton
import triton.language as tl


def _take(old: int, new: int, order: str) -> tl.constexpr:
    """Return PTX that each thread spins in until it has changed its own word, seen by all GPUs at
    once."""
    return tl.constexpr(
        f"""{{
            .reg .pred again;
        retry:
            atom.{order}.sys.global.cas.b32 $0, [$1], {old}, {new};
            setp.ne.b32 again, $0, {old};
            @again bra retry;
        }}"""
    )


_SEND = _take(0, 1, "relaxed")
_SEND_AFTER_WRITES = _take(0, 1, "release")
_WAIT = _take(1, 0, "relaxed")
_WAIT_BEFORE_READS = _take(1, 0, "acquire")


@triton.jit  # type: ignore[untyped-decorator]
def get_tid() -> tl.tensor:
    """Return x, y and z of this thread in its block."""
    return tl.inline_asm_elementwise(
        "mov.u32 $0, %tid.x; mov.u32 $1, %tid.y; mov.u32 $2, %tid.z;",
        "=r,=r,=r",
        [],
        dtype=(tl.uint32, tl.uint32, tl.uint32),
        is_pure=True,
        pack=1,
    )


@triton.jit  # type: ignore[untyped-decorator]
def get_ntid() -> tl.tensor:
    """Return how many threads a block has along x, y and z."""
    return tl.inline_asm_elementwise(
        "mov.u32 $0, %ntid.x; mov.u32 $1, %ntid.y; mov.u32 $2, %ntid.z;",
        "=r,=r,=r",
        [],
        dtype=(tl.uint32, tl.uint32, tl.uint32),
        is_pure=True,
        pack=1,
    )


@triton.jit  # type: ignore[untyped-decorator]
def get_flat_tid() -> tl.tensor:
    """Return the number of this thread in its block."""
    x, y, z = get_tid()
    width, height, _ = get_ntid()
    return (z * height + y) * width + x


@triton.jit  # type: ignore[untyped-decorator]
def get_flat_bid() -> tl.tensor:
    """Return the number of this block in its grid."""
    plane = tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)
    return plane * tl.num_programs(0) + tl.program_id(0)


@triton.jit  # type: ignore[untyped-decorator]
def sync_threads() -> None:
    """Wait until all threads of a block arrive, and see what the others wrote.

    Triton's own: the compiler knows that a warp has to be in it as one. In a loop it gives threads
    that signal and those that do not a `bar.sync` each where that is written as assembly.
    """
    tl.debug_barrier()


@triton.jit  # type: ignore[untyped-decorator]
def _check(sem: tl.constexpr) -> None:
    is_known: tl.constexpr = sem == "relaxed" or sem == "acq_rel"  # noqa: PLR1714 - Triton has no `in`
    tl.static_assert(is_known, "sem is `relaxed` or `acq_rel`")


@triton.jit  # type: ignore[untyped-decorator]
def send_signal(addrs: tl.tensor, sem: tl.constexpr) -> None:
    """Take words of others' pads, one for each thread, from 0 to 1; `addrs` are read as unsigned 32
    bits."""
    _check(sem)
    tl.inline_asm_elementwise(
        _SEND if sem == "relaxed" else _SEND_AFTER_WRITES,
        "=r,l",
        [addrs.to(tl.uint64)],
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )


@triton.jit  # type: ignore[untyped-decorator]
def wait_signal(addrs: tl.tensor, sem: tl.constexpr) -> None:
    """Take words of this rank's own pad, one for each thread, from 1 back to 0."""
    _check(sem)
    tl.inline_asm_elementwise(
        _WAIT if sem == "relaxed" else _WAIT_BEFORE_READS,
        "=r,l",
        [addrs.to(tl.uint64)],
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )


@triton.jit  # type: ignore[untyped-decorator]
def blockwise_barrier(
    signal_pad_ptrs: tl.tensor,
    block_id: tl.tensor,
    rank: tl.tensor,
    world_size: tl.tensor,
    sem: tl.constexpr,
) -> None:
    """Wait for the blocks of the same number on all ranks; blocks of a rank do not wait for each
    other.

    `signal_pad_ptrs` is the address of the ranks' pads' addresses; `block_id` None is this block.
    Thread i of a block signals rank i and waits for it, so the others need `sync_threads` after it;
    and before it, where `acq_rel` is to publish what they wrote.
    """
    if block_id is None:
        block_id = get_flat_bid()
    peer = get_flat_tid()
    if peer < world_size:
        pads = signal_pad_ptrs.to(tl.pointer_type(tl.uint64))
        theirs = tl.load(pads + peer).to(tl.pointer_type(tl.uint32))
        own = tl.load(pads + rank).to(tl.pointer_type(tl.uint32))
        send_signal(theirs + block_id * world_size + rank, sem)
        wait_signal(own + block_id * world_size + peer, sem)
