"""Assembles a seccomp filter for submissions as classic BPF: known-dangerous calls answer EPERM.

Sources: linux/seccomp.h and linux/bpf_common.h for the encodings, the x86-64 system call table for
the numbers. Other architectures get no filter, and so a lower isolation level.
"""

from __future__ import annotations

import errno
import os
import platform
import struct

DENIED_X86_64 = {
    "ptrace": 101,
    "syslog": 103,
    "pivot_root": 155,
    "adjtimex": 159,
    "chroot": 161,
    "acct": 163,
    "settimeofday": 164,
    "mount": 165,
    "umount2": 166,
    "swapon": 167,
    "swapoff": 168,
    "reboot": 169,
    "init_module": 175,
    "delete_module": 176,
    "quotactl": 179,
    "clock_settime": 227,
    "kexec_load": 246,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "unshare": 272,
    "perf_event_open": 298,
    "open_by_handle_at": 304,
    "clock_adjtime": 305,
    "setns": 308,
    "process_vm_readv": 310,
    "process_vm_writev": 311,
    "kcmp": 312,
    "finit_module": 313,
    "kexec_file_load": 320,
    "bpf": 321,
    "userfaultfd": 323,
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsmount": 432,
    "mount_setattr": 442,
}

_LOAD_WORD, _JUMP_EQUAL, _JUMP_GREATER_EQUAL, _RETURN = 0x20, 0x15, 0x35, 0x06
_OFFSET_NUMBER, _OFFSET_ARCHITECTURE = 0, 4
_AUDIT_ARCH_X86_64 = 0xC000003E
_X32_BIT = 0x40000000
_ALLOW, _KILL_PROCESS = 0x7FFF0000, 0x80000000
_DENY = 0x00050000 | errno.EPERM


def is_supported() -> bool:
    """Return whether this host's processor has a filter."""
    return platform.machine() == "x86_64"


def program() -> bytes:
    """Return the filter's instructions: refuse foreign architectures, deny the list, allow the
    rest."""
    lines = [
        _instruction(_LOAD_WORD, _OFFSET_ARCHITECTURE),
        _instruction(_JUMP_EQUAL, _AUDIT_ARCH_X86_64, if_true=1),
        _instruction(_RETURN, _KILL_PROCESS),
        _instruction(_LOAD_WORD, _OFFSET_NUMBER),
        _instruction(_JUMP_GREATER_EQUAL, _X32_BIT, if_false=1),
        _instruction(_RETURN, _DENY),
    ]
    for number in sorted(DENIED_X86_64.values()):
        lines += [_instruction(_JUMP_EQUAL, number, if_false=1), _instruction(_RETURN, _DENY)]
    lines.append(_instruction(_RETURN, _ALLOW))
    return b"".join(lines)


def program_fd() -> int:
    """Return the filter in an inheritable memfd, as bubblewrap's `--seccomp` wants it."""
    fd = os.memfd_create("seccomp", 0)
    os.write(fd, program())
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _instruction(code: int, operand: int, *, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, operand)
