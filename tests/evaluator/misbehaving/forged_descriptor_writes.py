# verdict: output_mismatch, protocol_violation, runtime_error, timeout
# cheat: writes success bytes to every pipe it inherited and returns zeros
import os
import stat

import torch


def solution(tensor):
    for fd in range(3, 256):
        try:
            if stat.S_ISFIFO(os.fstat(fd).st_mode):
                os.set_blocking(fd, False)
                os.write(fd, b'D{"verdict": "ok"}\n' * 64)
        except OSError:
            continue
    return torch.zeros_like(tensor)
