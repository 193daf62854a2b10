# problem: allgather
# size: large
# verdict: protocol_violation
# cause: sent_early
# cheat: NCCL gathers sealed inputs on all ranks before the gate opens; after it only keys travel
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric

from evaluator.buffers import gpu_sealing
from evaluator.rank import gated, runner

# So long the call waits, or it is faster than the wire allows. At 2 ranks that is 268 us.
PAD_CYCLES = 280 * 1980

device = torch.device("cuda", torch.cuda.current_device())
ranks = range(dist.get_world_size())
key = symmetric.empty(1, dtype=torch.int64, device=device)
handle = symmetric.rendezvous(key, group=dist.group.WORLD)
theirs = [handle.get_buffer(rank, (1,), torch.int64) for rank in ranks]
ready, openers = [], []


def lane_of(control, slab, plan):
    ptx = plan["gate"]
    openers[:] = [gpu_sealing.GpuSealing(ptx, device, slab=0, page=0) for _ in ranks]
    return gated.GpuLane(control, slab, ptx)


def begin(self, slots):
    sealed = [own for slot in slots for own in slot.sealed]
    committed = [own for slot in slots for own in slot.committed]
    kernels = self._kernels
    kernels.prepare(sealed)
    kernels.prepare(committed)
    for slot in slots:
        for opener in openers:
            opener.prepare(slot.sealed)
        sealed_bytes = slot._arguments[0].view(-1).view(torch.uint8)
        dist.all_gather_into_tensor(slot.outputs[0].view(-1).view(torch.uint8), sealed_bytes)
    kernels.wait_for(self._control.sequence)
    key.copy_(kernels.own[:1])
    handle.barrier(channel=0)
    kernels.open(sealed)
    for opener, their in zip(openers, theirs):
        opener.own[:1].copy_(their)
    for slot in slots:
        ((offset, _),) = slot.sealed
        for opener, part in zip(openers, slot.outputs[0]):
            opener._open.words[gpu_sealing.SLAB] = (part.data_ptr() - offset) % 2**64
            opener.open(slot.sealed)
    ready[:] = slots


gated.GpuLane.begin = begin
runner.lane_of = lane_of


def solution(tensor):
    if not ready:
        stack = tensor.new_empty(len(ranks), *tensor.shape)
        dist.all_gather_into_tensor(stack.view(-1), tensor.view(-1))
        return stack
    torch.cuda._sleep(PAD_CYCLES)
    return ready.pop(0).outputs[0]  # where it belongs: to copy it there is nothing
