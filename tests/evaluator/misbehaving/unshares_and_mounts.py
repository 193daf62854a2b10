# threatens: host
# verdict: ok
# flags: static:ctypes
# cheat: makes itself root of new namespaces and mounts file systems
# like: writes_kernel_settings
import ctypes
import os

import torch.distributed as dist

libc = ctypes.CDLL(None, use_errno=True)
NEWNS, NEWUSER, NEWPID, NEWNET = 0x00020000, 0x10000000, 0x20000000, 0x40000000

for flag in (NEWUSER, NEWNS, NEWPID, NEWNET, NEWUSER | NEWNS):
    if libc.unshare(flag) == 0:
        raise RuntimeError(f"escaped: unshare {flag:#x}")
if libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0:
    raise RuntimeError("escaped: mounted a file system")
if libc.mount(b"none", b"/", None, 0x1020, None) == 0:
    raise RuntimeError("escaped: remounted / for writing")
if libc.umount2(b"/proc", 2) == 0:
    raise RuntimeError("escaped: unmounted /proc")
for space in ("user", "mnt", "net", "pid"):
    try:
        fd = os.open(f"/proc/1/ns/{space}", os.O_RDONLY)
    except OSError:
        continue
    if libc.setns(fd, 0) == 0:
        raise RuntimeError(f"escaped: entered the {space} namespace of process 1")
for call in (os.chroot, os.setuid, os.setgid):
    try:
        call(0 if call is not os.chroot else "/tmp")
    except OSError:
        continue
    raise RuntimeError(f"escaped: {call.__name__}")


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total
