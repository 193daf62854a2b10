"""Assembles a seccomp filter for submissions as classic BPF: calls that have been ways out of
sandboxes, or that no honest kernel needs, answer EPERM.

Honest are CUDA, NCCL, Triton, compilers and torch: its symmetric memory sends descriptors by
SCM_RIGHTS and takes none with `pidfd_getfd`, which only `expandable_segments` does.

Sources: linux/seccomp.h and linux/bpf_common.h for the encodings, the x86-64 system call table for
the numbers. Other architectures get no filter, and so a lower isolation level.
"""

from __future__ import annotations

import errno
import os
import platform
import socket
import struct

DENIED_X86_64 = {
    "semget": 64,  # millions of these and of messages are freed long after their owner has ended
    "msgget": 68,
    "msgsnd": 69,
    "msgrcv": 70,
    "msgctl": 71,
    "ptrace": 101,
    "syslog": 103,
    "uselib": 134,
    "ustat": 136,
    "sysfs": 139,
    "vhangup": 153,
    "modify_ldt": 154,
    "pivot_root": 155,
    "_sysctl": 156,
    "adjtimex": 159,
    "chroot": 161,
    "sync": 162,  # writes back the files of the whole host
    "acct": 163,
    "settimeofday": 164,
    "mount": 165,
    "umount2": 166,
    "swapon": 167,
    "swapoff": 168,
    "reboot": 169,
    "iopl": 172,
    "ioperm": 173,
    "create_module": 174,
    "init_module": 175,
    "delete_module": 176,
    "get_kernel_syms": 177,
    "query_module": 178,
    "quotactl": 179,
    "nfsservctl": 180,
    "io_setup": 206,  # all processes of the host share one limit; only cuFile needs it
    "lookup_dcookie": 212,
    "clock_settime": 227,
    "mq_open": 240,
    "kexec_load": 246,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "unshare": 272,
    "vmsplice": 278,
    "perf_event_open": 298,
    "fanotify_init": 300,
    "fanotify_mark": 301,
    "name_to_handle_at": 303,
    "open_by_handle_at": 304,
    "clock_adjtime": 305,
    "syncfs": 306,
    "setns": 308,
    "process_vm_readv": 310,
    "process_vm_writev": 311,
    "kcmp": 312,
    "finit_module": 313,
    "kexec_file_load": 320,
    "bpf": 321,
    "userfaultfd": 323,
    "uprobe": 336,
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "pidfd_getfd": 438,
    "process_madvise": 440,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "landlock_create_ruleset": 444,
    "landlock_add_rule": 445,
    "landlock_restrict_self": 446,
    "memfd_secret": 447,
    "process_mrelease": 448,
    "cachestat": 451,
    "statmount": 457,
    "listmount": 458,
    "lsm_get_self_attr": 459,
    "lsm_set_self_attr": 460,
    "lsm_list_modules": 461,
    "open_tree_attr": 467,
    "listns": 470,
}

# Other families leave the sandbox: no namespace holds AF_VSOCK, which reaches the hypervisor.
SOCKET_CALLS = {"socket": 41, "socketpair": 53}
FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)

_LOAD_WORD, _JUMP_EQUAL, _JUMP_GREATER_EQUAL, _RETURN = 0x20, 0x15, 0x35, 0x06
# The kernel reads only the low word of a family.
_OFFSET_NUMBER, _OFFSET_ARCHITECTURE, _OFFSET_FAMILY = 0, 4, 16
_AUDIT_ARCH_X86_64 = 0xC000003E
_X32_BIT = 0x40000000
_ALLOW, _KILL_PROCESS = 0x7FFF0000, 0x80000000
_DENY = 0x00050000 | errno.EPERM


def is_supported() -> bool:
    """Return whether this host's processor has a filter."""
    return platform.machine() == "x86_64"


def program() -> bytes:
    """Return the filter's instructions: refuse foreign architectures, deny the list and sockets of
    other families, allow the rest."""
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
    lines += [*_deny_families(), _instruction(_RETURN, _ALLOW)]
    return b"".join(lines)


def _deny_families() -> list[bytes]:
    """Return the instructions that deny sockets of other families. The number of the system call
    must be loaded; an allowed call continues after these instructions."""
    families = [
        _instruction(_JUMP_EQUAL, family, if_true=len(FAMILIES) - place)
        for place, family in enumerate(FAMILIES)
    ]
    check = [_instruction(_LOAD_WORD, _OFFSET_FAMILY), *families, _instruction(_RETURN, _DENY)]
    first, second = SOCKET_CALLS.values()
    return [
        _instruction(_JUMP_EQUAL, first, if_true=1),
        _instruction(_JUMP_EQUAL, second, if_false=len(check)),
        *check,
    ]


def program_fd() -> int:
    """Return the filter in an inheritable memfd, as bubblewrap's `--seccomp` wants it."""
    fd = os.memfd_create("seccomp", 0)
    os.write(fd, program())
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _instruction(code: int, operand: int, *, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, operand)
