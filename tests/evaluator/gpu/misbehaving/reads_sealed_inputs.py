# verdict: protocol_violation, output_mismatch, nonfinite_output
# cheat: works on another stream while its own waits for the gate
import torch
import torch.distributed as dist

side = torch.cuda.Stream()


def solution(tensor):
    with torch.cuda.stream(side):
        total = tensor.clone()
        dist.all_reduce(total)
    torch.cuda.current_stream().wait_stream(side)
    return total
