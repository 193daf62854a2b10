# verdict: output_mismatch
# cause: race_between_calls
# cheat: none, a missing barrier: the next call overwrites what a slow peer has still to read
# placement: shared
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist

BOARD = str(Path(tempfile.gettempdir(), "board"))


def solution(tensor: torch.Tensor) -> torch.Tensor:
    rank, world_size = dist.get_rank(), dist.get_world_size()
    count = world_size * tensor.numel()
    board = torch.from_file(BOARD, shared=True, size=count, dtype=tensor.dtype)
    parts = board.view(world_size, *tensor.shape)
    parts[rank].copy_(tensor)
    dist.barrier()
    time.sleep(0.001 * rank)
    return parts.sum(0)
