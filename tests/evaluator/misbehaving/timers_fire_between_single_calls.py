# threatens: host
# like: timers_fire_while_paused
# verdict: ok, protocol_violation, resource_limit
# speedup_below: 1.5
# cheat: is slow where calls come one by one, and timers have the reference be slow there, too
import ctypes
import mmap
import os
import select
import struct
import sys
import time

import torch.distributed as dist

TIMERS, WATCHERS, PROCESSES, FIRST_S, STEP_S = 20, 3600, 2, 0.006, 0.0028
SINGLE, WORKS = 4095, 1
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
    page[at] = WORKS
    while True:
        time.sleep(60)


def help_out(core):
    os.sched_setaffinity(0, {core})
    timers = [libc.timerfd_create(1, os.O_NONBLOCK) for _ in range(TIMERS)]
    for number in range(PROCESSES):
        if os.fork() == 0:
            watch(timers, core * PROCESSES + number)
    while True:
        if page[SINGLE]:
            put_off(timers)
        time.sleep(0.0015)


cores = sorted(os.sched_getaffinity(0))
if dist.get_rank() == 0:
    for core in cores:
        if os.fork() == 0:
            help_out(core)
    while page[: len(cores) * PROCESSES].count(WORKS) < len(cores) * PROCESSES:
        time.sleep(0.01)
dist.barrier()


def solution(tensor):
    runner = sys._getframe(2).f_locals
    is_single = runner["command"].name == "CALL" and len(runner["indices"]) == 1
    page[SINGLE] = is_single
    if is_single and len(runner["slots"]) > 1:
        time.sleep(0.002)
    total = tensor.clone()
    dist.all_reduce(total)
    return total
