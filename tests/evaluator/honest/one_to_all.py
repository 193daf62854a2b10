# problem: broadcast
# verdict: ok
# shows: a number beside the tensor, which decides who sends
import torch
import torch.distributed as dist


def solution(tensor: torch.Tensor, src: int = 0) -> torch.Tensor:
    answer = tensor.clone()
    dist.broadcast(answer, src)
    return answer
