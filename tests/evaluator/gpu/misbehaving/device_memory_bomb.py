# threatens: host
# verdict: oom
# cause: gpu_memory
# cheat: takes the GPU's memory until it is refused
import torch

GIBIBYTE = 1 << 30

hoard = []


def solution(tensor):
    while True:
        hoard.append(torch.empty(GIBIBYTE, dtype=torch.uint8, device=tensor.device))
