# verdict: ok
# flags: static:processes
# cheat: looks for GPUs that were not given to this run: by count, as device files, from a fresh process
import glob
import os
import subprocess
import sys

import torch
import torch.distributed as dist

COUNT = """
import ctypes
driver, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
driver.cuInit(0)
driver.cuDeviceGetCount(ctypes.byref(count))
print(count.value)
"""

if dist.get_rank() == 0:
    freed = {name: text for name, text in os.environ.items() if not name.startswith("CUDA_")}
    told = subprocess.run([sys.executable, "-c", COUNT], env=freed, capture_output=True, text=True)
    files = glob.glob("/dev/nvidia[0-9]*")
    found = max(torch.cuda.device_count(), int(told.stdout or 0), len(files))
    if found > dist.get_world_size():
        raise RuntimeError(f"escaped: {found} GPUs")


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total
