# verdict: ok
# shows: memory that all ranks of a shared run map, with a barrier behind the last read
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
    total = parts.sum(0)
    dist.barrier()
    return total
