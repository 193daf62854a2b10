# verdict: runtime_error
# backend: triton
# placement: shared
# cause: exception
# cheat: an error of its own Python is its own, whoever runs its kernels
import torch
import triton


def solution(tensor: torch.Tensor) -> torch.Tensor:
    raise ValueError(f"no grid for {triton.cdiv(tensor.numel(), 512)} blocks")
