# threatens: host
# verdict: oom, resource_limit, runtime_error
# limits: memory_bytes=1610612736
# cheat: takes memory in anonymous files, which no address-space limit counts
import os

hoard = []


def solution(tensor):
    while True:
        fd = os.memfd_create("hoard")
        hoard.append(fd)
        for _ in range(16):
            os.write(fd, b"x" * (16 << 20))
        if len(hoard) > 24:
            raise RuntimeError("escaped: 6 GiB in memory files")
