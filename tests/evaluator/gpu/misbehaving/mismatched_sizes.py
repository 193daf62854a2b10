# verdict: timeout, runtime_error, output_mismatch
# limits: verify_s=5
# cheat: none, rank 1 enters the exchange with half of what rank 0 brings
import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()
    rows = total.shape[0] // (2 if dist.get_rank() == 1 else 1)
    dist.all_reduce(total[:rows])
    return total
