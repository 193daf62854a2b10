"""The stand-in for torch's symmetric memory: what one rank writes, another reads."""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed import _symmetric_memory
from torch.multiprocessing.spawn import start_processes

from evaluator.rank import symmetric_memory

RANKS = 2


def _rank(rank: int, store: str, task: Callable[[int, Any, torch.Tensor], None]) -> None:
    tempfile.tempdir = str(Path(store).parent)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=RANKS)
    symmetric_memory.put_in_place()
    own = _symmetric_memory.empty((3, 5), dtype=torch.float32, device=torch.device("cpu"))
    assert dist.group.WORLD is not None
    handle = _symmetric_memory.rendezvous(own, dist.group.WORLD)
    task(rank, handle, own)
    dist.barrier()
    dist.destroy_process_group()


def on_ranks(tmp_path: Path, task: Callable[[int, Any, torch.Tensor], None]) -> None:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    arguments = (str(tmp_path / "store"), task)
    start_processes(_rank, arguments, nprocs=RANKS, start_method="fork")  # type: ignore[no-untyped-call]


def _describes_itself(rank: int, handle: Any, own: torch.Tensor) -> None:
    assert (handle.rank, handle.world_size, handle.buffer_size) == (rank, RANKS, 60)
    assert handle.buffer_ptrs[rank] == own.data_ptr()
    tables = [
        (ctypes.c_int64 * RANKS).from_address(at)
        for at in (handle.buffer_ptrs_dev, handle.signal_pad_ptrs_dev)
    ]
    assert [list(table) for table in tables] == [handle.buffer_ptrs, handle.signal_pad_ptrs]
    assert handle.multicast_ptr == 0
    assert dist.group.WORLD is not None
    assert _symmetric_memory.rendezvous(own, dist.group.WORLD) is handle
    assert _symmetric_memory.is_symm_mem_tensor(own[1:])


def _reads_its_peer(rank: int, handle: Any, own: torch.Tensor) -> None:
    own.fill_(rank + 1)
    handle.barrier()
    peer = 1 - rank
    assert handle.get_buffer(peer, (3, 5), torch.float32).eq(2 - rank).all()
    last = (ctypes.c_float * 15).from_address(handle.buffer_ptrs[peer])
    assert list(last) == [2.0 - rank] * 15
    assert handle.get_buffer(peer, (2,), torch.float32, 13).tolist() == [2.0 - rank] * 2
    handle.barrier(channel=1)
    handle.get_remote_tensor(peer, (15,), torch.float32)[14] = 9.0
    handle.barrier(channel=2)
    assert own[2, 4] == 9.0
    with pytest.raises(RuntimeError, match="bytes of a symmetric memory"):
        handle.get_buffer(peer, (10000,), torch.float32)


def _signals_by_pads(rank: int, handle: Any, own: torch.Tensor) -> None:
    pad = handle.get_signal_pad(1 - rank)
    assert pad.dtype == torch.uint32
    assert pad.numel() == _symmetric_memory.get_signal_pad_size() // 4
    assert not handle.get_signal_pad(rank).any()
    handle.barrier()
    handle.get_signal_pad(1 - rank, (1,), torch.int64, storage_offset=3).fill_(7)
    handle.barrier()
    assert handle.get_signal_pad(rank, (4,), torch.int64).tolist() == [0, 0, 0, 7]
    assert ctypes.c_int64.from_address(handle.signal_pad_ptrs[rank] + 24).value == 7
    own.zero_()
    symmetric_memory.SymmetricMemory.memset32(own.flatten(), 1, -1, 3)
    symmetric_memory.SymmetricMemory.stream_write_value32(own.flatten(), 2, 5)
    assert own.flatten().view(torch.int32)[:5].tolist() == [0, -1, 5, -1, 0]
    assert handle.get_signal_pad(rank)[6] == 7


def _waits_for_signals(rank: int, handle: Any, own: torch.Tensor) -> None:
    for step in range(3):
        if rank == 0:
            own.fill_(step)
            handle.put_signal(1, channel=2)
            handle.wait_signal(1)
        else:
            handle.wait_signal(0, channel=2)
            assert handle.get_buffer(0, (3, 5), torch.float32).eq(step).all()
            handle.put_signal(0)


@pytest.mark.parametrize(
    "task", [_describes_itself, _reads_its_peer, _signals_by_pads, _waits_for_signals]
)
def test_ranks_share_it(tmp_path: Path, task: Callable[[int, Any, torch.Tensor], None]) -> None:
    on_ranks(tmp_path, task)


def test_only_what_it_made_can_be_shared() -> None:
    with pytest.raises(RuntimeError, match="not allocated as symmetric"):
        symmetric_memory.SymmetricMemory.rendezvous(torch.zeros(3), "0")
    with pytest.raises(RuntimeError, match="no cuda:1 here"):
        symmetric_memory.SymmetricMemory.empty_strided_p2p(
            (3,), (1,), torch.float32, torch.device("cuda:1")
        )
    with pytest.raises(RuntimeError, match="no NVSHMEM here"):
        symmetric_memory.SymmetricMemory.set_backend("NVSHMEM")


def _by_the_class(rank: int, handle: Any, own: torch.Tensor) -> None:
    from torch._C._distributed_c10d import _SymmetricMemory

    assert vars(_SymmetricMemory) == vars(symmetric_memory.SymmetricMemory)
    assert dist.group.WORLD is not None
    name = dist.group.WORLD.group_name
    mine = _SymmetricMemory.empty_strided_p2p((4,), (1,), torch.float32, torch.device("cpu"), name)
    shared = _SymmetricMemory.rendezvous(mine)
    shared.get_buffer(1 - rank, (4,), torch.float32).fill_(rank)
    shared.barrier()
    assert mine.tolist() == [1 - rank] * 4


def test_torch_class_itself_is_the_stand_in(tmp_path: Path) -> None:
    on_ranks(tmp_path, _by_the_class)
