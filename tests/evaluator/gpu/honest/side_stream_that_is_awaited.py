# verdict: ok
# flags: uses_nccl, static:side-stream
# shows: a stream of its own, which the current stream waits for
import torch
import torch.distributed as dist

side = torch.cuda.Stream()  # type: ignore[no-untyped-call]


def solution(tensor: torch.Tensor) -> torch.Tensor:
    current = torch.cuda.current_stream()
    side.wait_stream(current)
    with torch.cuda.stream(side):
        total = tensor.clone()
        dist.all_reduce(total)
    current.wait_stream(side)
    total.record_stream(current)
    return total
