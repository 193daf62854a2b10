"""Finds whether a GPU is idle, as somebody sees it who has work there."""

from __future__ import annotations

import time

import torch

IDLE_S, TURN_S, NEVER_IDLE_S = 0.005, 0.0005, 0.25  # processes take turns of about 2 ms on a GPU


def is_gpu_idle(scratch: torch.Tensor) -> bool:
    """Wait until nobody else computes on the GPU of `scratch`, which is overwritten; False where
    somebody goes on and on.

    Processes take turns on a GPU. Whoever is not alone waits for milliseconds now and then.
    """
    torch.cuda.synchronize()  # what this process has still to do there says nothing of others
    began = idle_since = time.perf_counter()
    while (now := time.perf_counter()) - idle_since < IDLE_S:
        if now - began > NEVER_IDLE_S:
            return False
        scratch.zero_()
        torch.cuda.synchronize()
        if time.perf_counter() - now > TURN_S:
            idle_since = time.perf_counter()
    return True
