# threatens: host
# verdict: ok, resource_limit
# cheat: is slow, and uses up the user's epoll watches, without which the reference cannot join
# like: timers_fire_while_paused
import os
import select
import time

import torch.distributed as dist

kept = []


def watch(count):
    """Let each of so many epoll instances watch each of so many events."""
    events = [os.eventfd(0) for _ in range(count)]
    kept.extend(events)
    for _ in range(count):
        own = select.epoll()
        kept.append(own)
        for event in events:
            own.register(event, select.EPOLLIN)


def use_up():
    try:
        watch(1900)
    except OSError as error:
        print(error, flush=True)


if dist.get_rank() == 0:
    for _ in range(2):
        if os.fork() == 0:
            use_up()
            while True:
                select.select([], [], [], 60)
    use_up()
dist.barrier()


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    time.sleep(0.001)  # the verdict that is to get lost
    return total
