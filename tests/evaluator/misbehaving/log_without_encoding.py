# verdict: ok
# like: exception_without_encoding
# cheat: logs bytes that are no text, with markup and terminal controls
import os

import torch.distributed as dist


def solution(tensor):
    os.write(1, b"\xff\xfe\x00\x1b[2J\x1b]0;owned\x07<script>alert(1)</script>\xed\xa0\x80\n")
    total = tensor.clone()
    dist.all_reduce(total)
    return total
