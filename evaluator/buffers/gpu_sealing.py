"""Launches the kernels that open sealed inputs and commit to outputs, on a GPU's current stream."""

from __future__ import annotations

from ctypes import c_uint

import torch

from evaluator.buffers import control_page, cuda_kernel, sealing
from evaluator.buffers.sealing import Ranges

MOST_BLOCKS, THREAD_BYTES = 1056, 64  # eight blocks for each multiprocessor of a Hopper GPU
PAGE, OWN, SLAB, RANGES, COUNT, NUMBER = range(6)  # what `Given` holds


class GpuSealing:
    """Launches the kernels over one slab. `page` is the address on the GPU of the control words."""

    def __init__(self, ptx: str, device: torch.device, *, slab: int, page: int) -> None:
        self.own = torch.zeros(sealing.OWN_WORDS, dtype=torch.int64, device=device)
        self._device, self._tables = device, dict[tuple[tuple[int, int], ...], torch.Tensor]()
        self._wait, self._open, self._commit = (
            self._launch(ptx, name, block, slab=slab, page=page)
            for name, block in (
                ("wait_at_gate", 1),
                ("open_inputs", sealing.BLOCK),
                ("commit", sealing.BLOCK),
            )
        )

    def prepare(self, ranges: Ranges) -> torch.Tensor:
        """Return the ranges as the kernels read them: int64, [ranges, 2]. Copied once, and before
        a gate: what is copied behind one waits for it."""
        table = self._tables.get(key := tuple(ranges))
        if table is None:
            table = torch.tensor(key, dtype=torch.int64).to(self._device)
            self._tables[key] = table
        return table

    def wait_for(self, number: int) -> None:
        """Spin until the gate's word is at least `number`, then keep the key."""
        self._wait.words[NUMBER] = number
        self._wait(c_uint(1))

    def open(self, ranges: Ranges) -> None:
        """Make sealed inputs readable."""
        blocks = -(-sum(nbytes for _, nbytes in ranges) // (THREAD_BYTES * sealing.BLOCK))
        self._over(self._open, ranges, max(1, min(MOST_BLOCKS, blocks)))

    def commit(self, ranges: Ranges, number: int) -> None:
        """Write the commitment to these ranges next to `number`, the call's."""
        self._commit.words[NUMBER] = number
        self._over(self._commit, ranges, sealing.commit_blocks(ranges))

    def _over(self, launch: cuda_kernel.KernelLaunch, ranges: Ranges, blocks: int) -> None:
        launch.words[RANGES], launch.words[COUNT] = self.prepare(ranges).data_ptr(), len(ranges)
        launch(c_uint(blocks))

    def _launch(
        self, ptx: str, name: str, block: int, *, slab: int, page: int
    ) -> cuda_kernel.KernelLaunch:
        kernel, device = cuda_kernel.load(ptx, name), self._device.index
        launch = cuda_kernel.KernelLaunch(kernel, words=6, block=block, device=device)
        launch.words[PAGE], launch.words[OWN] = page, self.own.data_ptr()
        launch.words[SLAB] = slab
        return launch


def commitments(ptx: str, slab: torch.Tensor, launches: list[tuple[Ranges, int]]) -> list[int]:
    """Return what commits to ranges of a slab on a GPU, given with the key of each launch."""
    page = torch.zeros(control_page.DONE + 1, dtype=torch.int64, device=slab.device)
    kernels = GpuSealing(ptx, slab.device, slab=slab.data_ptr(), page=page.data_ptr())
    found = []
    for ranges, key in launches:
        kernels.own[:2] = torch.tensor([sealing.signed(key), 0])
        kernels.commit(ranges, 1)
        found.append(int(page[control_page.COMMITMENT]) & sealing.ALL_BITS)
    return found
