# verdict: output_mismatch, nonfinite_output, protocol_violation, late_output
# like: superbatch_of_singles
# cheat: keeps calls back and answers four of them with one exchange at every fourth call
# timed: yes
import torch
import torch.distributed as dist

waiting = []
calls = 0


def solution(tensor):
    global calls
    calls += 1
    answer = torch.empty_like(tensor)
    if calls <= 12:
        answer.copy_(tensor)
        dist.all_reduce(answer)
        return answer
    waiting.append((tensor, answer))
    if len(waiting) == 4:
        merged = torch.cat([given.flatten() for given, _ in waiting])
        dist.all_reduce(merged)
        offset = 0
        for given, answer in waiting:
            answer.copy_(merged[offset : offset + given.numel()].view_as(given))
            offset += given.numel()
        waiting.clear()
    return answer
