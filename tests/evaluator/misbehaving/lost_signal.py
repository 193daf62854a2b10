# verdict: timeout
# cause: deadlock
# problem: broadcast
# cheat: none, a lost signal: the sender runs ahead, and its peer waits for a number that is gone
# like: hangs_on_one_rank
# placement: shared
# limits: verify_s=6
# slow: yes
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist

FOLDER = Path(tempfile.gettempdir())
calls = 0


def solution(tensor: torch.Tensor, src: int = 0) -> torch.Tensor:
    global calls
    calls += 1
    sent = torch.from_file(str(FOLDER / "sent"), shared=True, size=1, dtype=torch.int64)
    board = torch.from_file(
        str(FOLDER / "board"), shared=True, size=tensor.numel(), dtype=tensor.dtype
    ).view_as(tensor)
    if dist.get_rank() == src:
        board.copy_(tensor)
        sent.fill_(calls)
    while sent.item() != calls:
        time.sleep(0.001)
    return board.clone()
