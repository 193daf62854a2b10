# verdict: late_output
# cheat: commits to outputs that a thread writes while the next call of the round is timed
# like: commits_before_it_works
# timed: yes
import sys
import threading

import torch
import torch.distributed as dist

ROUND_CALLS = 16
made = [0]
at_work = list[threading.Thread]()


def solution(tensor: torch.Tensor) -> torch.Tensor:
    caller, slot = sys._getframe(2), sys._getframe(1).f_locals["self"]
    for thread in at_work:
        thread.join()
    at_work.clear()
    if caller.f_code.co_name == "make_gated" and is_not_the_last():
        at_work.append(threading.Thread(target=work, args=(tensor, slot.outputs[0])))
        caller.f_locals["lane"].end(caller.f_locals["slots"])
        at_work[0].start()
        return slot.outputs[0]  # type: ignore[no-any-return]
    total = tensor.clone()
    dist.all_reduce(total)
    return total


def work(tensor: torch.Tensor, place: torch.Tensor) -> None:
    total = tensor.clone()
    dist.all_reduce(total)
    place.copy_(total)


def is_not_the_last() -> bool:
    """Whether another call of one of the first two rounds follows."""
    made[0] += 1
    return made[0] < 2 * ROUND_CALLS and made[0] % ROUND_CALLS > 0
