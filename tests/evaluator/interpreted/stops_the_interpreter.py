# verdict: host_unsupported
# backend: triton
# placement: shared
# cause: interpreter
# flags: interpreted
# shows: a kernel that the interpreter gives up on
import torch
import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator]
def print_clock(out: tl.tensor) -> None:
    tl.store(out, tl.extra.cuda.globaltimer())


def solution(tensor: torch.Tensor) -> torch.Tensor:
    print_clock[(1,)](torch.zeros(1, dtype=torch.int64))
    return tensor
