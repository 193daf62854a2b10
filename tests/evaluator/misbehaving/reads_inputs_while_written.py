# verdict: ok
# cheat: a thread whose process seems to have ended reads inputs while the rank, stopped, cannot
import ctypes
import mmap
import os
import sys
import threading

import torch
import torch.distributed as dist

page = mmap.mmap(-1, 4096)
started = []


def is_stopped(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "T"


def watch(rank, words):
    """Count how often inputs changed while their rank was stopped."""
    known = None
    while True:
        now = [word.item() for word in words]
        if not is_stopped(rank):
            known = None
            continue
        page[0] += known not in (None, now) and page[0] < 255
        known = now


def start(slots):
    started.append(True)
    rank = os.getpid()
    if os.fork() == 0:
        words = [slot._arguments[0].view(torch.int32).view(-1)[-1] for slot in slots]
        threading.Thread(target=watch, args=(rank, words)).start()
        ctypes.CDLL(None).pthread_exit(None)


def solution(tensor):
    slots = sys._getframe(2).f_locals["slots"]
    if len(slots) > 1 and not started:
        start(slots)
    if page[0] >= 2:
        raise RuntimeError("escaped: inputs were read while they were written")
    total = tensor.clone()
    dist.all_reduce(total)
    return total
