# verdict: output_mismatch
# flags: static:side-stream
# cheat: works on a stream that nobody waits for, and returns before it has begun
import torch
import torch.distributed as dist

TWO_MILLISECONDS = 4_000_000  # cycles

side = torch.cuda.Stream()


def solution(tensor):
    answer = torch.zeros_like(tensor)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(TWO_MILLISECONDS)
        total = tensor.clone()
        dist.all_reduce(total)
        answer.copy_(total)
    return answer
