# threatens: host
# like: timers_fire_while_paused
# verdict: ok, protocol_violation, resource_limit
# cheat: timers go off while it is paused, so that empty batches scatter beyond measure: our error
import ctypes
import mmap
import os
import select
import struct
import time

import torch.distributed as dist

TIMERS, WATCHERS, PROCESSES, FIRST_S, STEP_S = 20, 3600, 4, 0.006, 0.0028
libc = ctypes.CDLL(None)
page = mmap.mmap(-1, 4096)


def put_off(timers):
    now = time.monotonic() + FIRST_S
    for position, timer in enumerate(timers):
        seconds, rest = divmod(now + position * STEP_S, 1)
        libc.timerfd_settime(
            timer, 1, struct.pack("qqqq", 0, 0, int(seconds), int(rest * 1e9)), None
        )


def watch(timers, at):
    kept = [select.epoll() for _ in range(WATCHERS)]
    for watcher in kept:
        for timer in timers:
            watcher.register(timer, select.EPOLLIN)
    page[at] = 1
    while True:
        time.sleep(60)


def help_out(core):
    os.sched_setaffinity(0, {core})
    timers = [libc.timerfd_create(1, os.O_NONBLOCK) for _ in range(TIMERS)]
    for number in range(PROCESSES):
        if os.fork() == 0:
            watch(timers, core * PROCESSES + number)
    while True:
        put_off(timers)
        time.sleep(0.0015)


cores = sorted(os.sched_getaffinity(0))
if dist.get_rank() == 0:
    for core in cores:
        if os.fork() == 0:
            help_out(core)
    while page[:].count(1) < len(cores) * PROCESSES:
        time.sleep(0.01)
dist.barrier()


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total
