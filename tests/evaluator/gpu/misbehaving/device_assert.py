# verdict: runtime_error
# cause: device_assert
# cheat: none, an index behind the end, which only the GPU sees
import torch


def solution(tensor):
    flat = tensor.flatten()
    behind = torch.full((1,), flat.numel(), dtype=torch.int64, device=tensor.device)
    return tensor + flat[behind]
