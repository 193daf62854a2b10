# threatens: host
# verdict: ok
# limits: scratch_bytes=67108864
# cheat: fills every folder it can write to; it must be refused at the limit
import os
import pathlib

import torch.distributed as dist

for folder in (
    "/tmp",
    os.path.expanduser("~"),
    os.getcwd(),
    "/dev/shm",
    "/var/tmp",
    "/run",
    "/dev",
    "/",
):
    path = pathlib.Path(folder, f"bomb.{os.getpid()}")
    try:
        with path.open("wb") as file:
            for _ in range(256):
                file.write(b"x" * (1 << 20))
        raise RuntimeError(f"escaped: wrote 256 MiB to {folder}")
    except OSError:
        if path.exists():
            path.unlink()


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total
