# like: reads_the_judge
# verdict: ok
# flags: static:ctypes
# cheat: reads other processes with ptrace, process_vm_readv and process_vm_writev
import ctypes
import os

import torch.distributed as dist

libc = ctypes.CDLL(None, use_errno=True)
PROCESS_VM_READV, PROCESS_VM_WRITEV = 310, 311
PTRACE_ATTACH = 16


class Span(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def spoke(what, pid):
    raise RuntimeError(f"escaped: {what} on process {pid}")


others = [int(p) for p in os.listdir("/proc") if p.isdigit() and int(p) != os.getpid()]
buffer = ctypes.create_string_buffer(8)
mine = Span(ctypes.addressof(buffer), 8)
for pid in others:
    if libc.ptrace(PTRACE_ATTACH, pid, None, None) == 0:
        spoke("ptrace", pid)
    for call in (PROCESS_VM_READV, PROCESS_VM_WRITEV):
        theirs = Span(ctypes.addressof(buffer), 8)
        spans = ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0
        if libc.syscall(call, pid, *spans) > 0:
            spoke("process_vm", pid)


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total
