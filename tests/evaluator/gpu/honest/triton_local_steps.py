# verdict: ok
# problem: tp_rms_norm
# backend: triton
# flags: uses_nccl
# shows: Triton for what a rank does alone, NCCL between
import torch
import torch.distributed as dist
import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator]
def sum_squares(x: tl.tensor, sums: tl.tensor, width: int, BLOCK: tl.constexpr) -> None:
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    values = tl.load(x + row * width + column, mask=column < width, other=0.0).to(tl.float32)
    tl.store(sums + row, tl.sum(values * values, axis=0))


@triton.jit  # type: ignore[untyped-decorator]
def scale_rows(
    x: tl.tensor, scales: tl.tensor, out: tl.tensor, width: int, BLOCK: tl.constexpr
) -> None:
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    place, inside = row * width + column, column < width
    values = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + place, (values * tl.load(scales + row)).to(tl.bfloat16), mask=inside)


def solution(x: torch.Tensor, gains: torch.Tensor, epsilon: float) -> torch.Tensor:
    tokens, width = x.shape
    block = triton.next_power_of_2(width)
    sums = x.new_empty(tokens, dtype=torch.float32)
    sum_squares[(tokens,)](x, sums, width, block)
    dist.all_reduce(sums)
    scales = torch.rsqrt(sums / (width * dist.get_world_size()) + epsilon)
    out = torch.empty_like(x)
    scale_rows[(tokens,)](x, scales, out, width, block)
    return gains * out
