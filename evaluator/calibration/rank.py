"""Measures GPUs: all from one process, or one of them as a rank among others. Started by calibrate.

Every measurement stands alone: what fails is told with its reason, and the next one is tried. Those
that may hang come last, since whoever started this process ends it after a while.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import IO, Any

import torch
import torch.distributed as dist

from evaluator.calibration.calibrate import MOST_REASON_CHARS, PEERS
from evaluator.calibration.measurements import EVERYWHERE, Missed, Said, Samples
from evaluator.calibration.on_gpus import (
    LINK_BYTES,
    Measure,
    block,
    event,
    event_us,
    gb_s,
    link_gb_s,
    links_gb_s,
    of_one_gpu,
    turns_of_pairs,
)
from evaluator.host.parent_death import die_with_parent
from evaluator.messages.codec import encode
from evaluator.messages.text import plain_text

LATENCY_STEPS = 100
SIGNALS = 200
ANSWERS = 20_000
JOIN_S = 60.0

# `mine` is the word that the other GPU writes, `theirs` its counterpart over there. Gives up after
# some seconds, so that a partner who failed leaves no kernel that never ends.
PING_PONG = """
extern "C" __global__ void ping_pong(
    volatile int* mine, volatile int* theirs, int start, int rounds, int begins, int* answered)
{
    int done = 0;
    for (int i = start + 1; i <= start + rounds; ++i) {
        if (begins) *theirs = i;
        for (int looks = 0; *mine < i && looks < (1 << 24); ++looks) {}
        if (*mine < i) break;
        if (!begins) *theirs = i;
        ++done;
    }
    *answered = done;
}
"""

Tell = Callable[[Said], None]


def main(name: str, world_size: int, folder: Path, parent_pid: int) -> None:
    """Measure as a rank, or for PEERS what one process measures of all GPUs; write findings below
    `folder`."""
    die_with_parent(parent_pid)
    with (folder / f"{name}.jsonl").open("w", buffering=1) as lines:
        tell = partial(_tell, lines)
        if name == PEERS:
            measure_links(tell, world_size)
        else:
            measure_rank(tell, int(name), world_size, folder / "store")


def measure_links(tell: Tell, world_size: int) -> None:
    """Measure the copies between each pair of GPUs, and between all at once."""
    for source, target in turns_of_pairs(world_size):
        attempt(tell, "link", f"{source} to {target}", partial(link_gb_s, source, target))
    attempt(tell, "links", EVERYWHERE, partial(links_gb_s, world_size))


def measure_rank(tell: Tell, rank: int, world_size: int, store: Path) -> None:
    """Measure this GPU alone, then together with the other ranks'. Collective over the ranks."""
    torch.cuda.set_device(rank)
    if rank == 0:
        tell(Said(versions=_versions()))
    for quantity, measure in of_one_gpu():
        attempt(tell, quantity, f"GPU {rank}", measure)
        torch.cuda.empty_cache()
    # NCCL finds its peers through the network, also where the only one is the loopback.
    os.environ.setdefault("NCCL_SOCKET_IFNAME", "lo")
    dist.init_process_group(
        "nccl",
        init_method=f"file://{store}",
        rank=rank,
        world_size=world_size,
        timeout=timedelta(seconds=JOIN_S),
        device_id=torch.device("cuda", rank),
    )
    attempt(tell, "all_to_all", EVERYWHERE, partial(_all_to_all_gb_s, rank, world_size))
    attempt(tell, "all_reduce", EVERYWHERE, _all_reduce_us)
    try:
        words, handle = _symmetric_words(rank)
    except Exception as error:  # noqa: BLE001 - as in attempt
        tell(_missed("symmetric memory", error))
    else:
        attempt(tell, "barrier", EVERYWHERE, partial(_barrier_us, handle))
        if rank < 2:
            attempt(tell, "signal_kernels", "0 and 1", partial(_signal_kernels_us, rank, handle))
            attempt(tell, "signal", "0 and 1", partial(_signal_us, rank, words, handle))
    torch.cuda.synchronize()
    dist.barrier()
    dist.destroy_process_group()


def attempt(tell: Tell, quantity: str, where: str, measure: Measure) -> None:
    """Tell the samples of a quantity, or why there are none."""
    try:
        tell(Said(found=Samples(quantity=quantity, where=where, samples=tuple(measure()))))
    except Exception as error:  # noqa: BLE001 - its reason is the result, and the rest goes on
        tell(_missed(f"{quantity}, {where}", error))


def _missed(what: str, error: Exception) -> Said:
    reason = plain_text(f"{type(error).__name__}: {error}", MOST_REASON_CHARS)
    return Said(missed=Missed(what=what, reason=reason))


def _tell(lines: IO[str], said: Said) -> None:
    lines.write(json.dumps(encode(said)) + "\n")


def _versions() -> dict[str, str]:
    nccl: tuple[int, ...] = torch.cuda.nccl.version()  # type: ignore[no-untyped-call]
    return {
        "torch": str(torch.__version__),
        "CUDA": str(torch.version.cuda),
        "NCCL": ".".join(map(str, nccl)),
    }


def _all_to_all_gb_s(rank: int, world_size: int) -> list[float]:
    part = LINK_BYTES // world_size
    given, got = (block(world_size * part, rank) for _ in range(2))
    times_us = event_us(lambda: dist.all_to_all_single(got, given), samples=20)
    return gb_s((world_size - 1) * part, times_us)


def _all_reduce_us() -> list[float]:
    one = torch.zeros(1, device="cuda")
    return event_us(lambda: dist.all_reduce(one), samples=30, calls=LATENCY_STEPS)


def _symmetric_words(rank: int) -> tuple[torch.Tensor, Any]:
    """Return zeros that every rank can write, and the handle to the others'."""
    import torch.distributed._symmetric_memory as symmetric

    words = symmetric.empty(1024, dtype=torch.int32, device=torch.device("cuda", rank))
    handle = symmetric.rendezvous(words, dist.group.WORLD)  # type: ignore[arg-type]
    words.zero_()
    torch.cuda.synchronize()
    dist.barrier()
    return words, handle


def _barrier_us(handle: Any) -> list[float]:
    return event_us(lambda: handle.barrier(channel=0), samples=30, calls=LATENCY_STEPS)


def _signal_kernels_us(rank: int, handle: Any) -> list[float]:
    other, steps = 1 - rank, [handle.put_signal, handle.wait_signal]

    def answer() -> None:
        for step in steps if rank == 0 else reversed(steps):
            step(other, channel=1)

    return [us / 2 for us in event_us(answer, samples=20, calls=SIGNALS)]


def _signal_us(rank: int, words: torch.Tensor, handle: Any) -> list[float]:
    kernel = torch.cuda._compile_kernel(PING_PONG, "ping_pong")
    theirs = handle.get_buffer(1 - rank, words.shape, words.dtype)
    answered = torch.zeros(1, dtype=torch.int32, device="cuda")
    times_us = []
    for start in range(0, 12 * ANSWERS, ANSWERS):
        began, ended = event(), event()
        began.record()
        given = [words, theirs, start, ANSWERS, int(rank == 0), answered]
        kernel(grid=(1, 1, 1), block=(1, 1, 1), args=given)
        ended.record()
        torch.cuda.synchronize()
        if int(answered) != ANSWERS:
            raise RuntimeError(f"{int(answered)} of {ANSWERS} answers came")
        times_us.append(began.elapsed_time(ended) * 1e3 / (2 * ANSWERS))
    return times_us[2:]


if __name__ == "__main__":
    main(sys.argv[4], int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
