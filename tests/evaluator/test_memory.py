"""Memory that a judge's rank and a sandboxed one share."""

from __future__ import annotations

import os
import socket

import pytest
import torch

from evaluator.buffers import memory
from evaluator.messages.rank_setup import receive_slab, send_slab

CPU = torch.device("cpu")


def test_what_one_writes_the_other_reads() -> None:
    fd, ours = memory.create(CPU, 1 << 16)
    one, other = socket.socketpair()
    send_slab(one, fd, ours.nbytes)
    os.close(fd)
    theirs = memory.open_fd(CPU, *receive_slab(other))
    theirs.tensor(256, (2, 3), torch.bfloat16).fill_(1.5)
    assert torch.equal(ours.tensor(256, (6,), torch.bfloat16), torch.full((6,), 1.5).bfloat16())
    assert ours.everything.shape == (1 << 16,)
    for end in (one, other):
        end.close()


def test_a_tensor_ends_where_its_own_bytes_end() -> None:
    fd, slab = memory.create(CPU, 1 << 12)
    os.close(fd)
    view = slab.tensor(512, (4,), torch.float32)
    assert view.untyped_storage().nbytes() == 16
    assert slab.tensor(0, (3, 0), torch.float32).shape == (3, 0)


def test_nobody_can_shrink_it() -> None:
    fd, _ = memory.create(CPU, 1 << 12)
    with pytest.raises(PermissionError):
        os.ftruncate(fd, 0)
    os.close(fd)


@pytest.mark.gpu(1)
def test_a_gpu_has_its_memory_back_when_a_slab_is_closed() -> None:
    device = torch.device("cuda", 0)
    torch.cuda.set_device(device)
    before, _ = torch.cuda.mem_get_info()
    fd, slab = memory.create(device, 1 << 30)
    os.close(fd)
    assert torch.cuda.mem_get_info()[0] <= before - (1 << 30)
    memory.close(slab)
    assert torch.cuda.mem_get_info()[0] >= before - (64 << 20)
