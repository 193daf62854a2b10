"""Runs a program where it can reach nothing: bubblewrap, seccomp, a cgroup leaf, limits."""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluator.host import cgroup, processes
from evaluator.host.freezer import Freezer, create_freezer
from evaluator.host.leftovers import own_folder, remove_folder
from evaluator.host.thunderkittens import thunderkittens_root
from evaluator.messages.faults import EvaluatorError, Survivors
from evaluator.messages.job import Limits
from evaluator.messages.report import Isolation
from evaluator.sandbox import multicast_guard, proc_mounts, seccomp
from evaluator.sandbox.pausing import Pauser
from evaluator.sandbox.process_limits import before_exec_of

REPOSITORY = Path(__file__).resolve().parents[2]
NOBODY = 65534
REAP_S = 5.0
MOST_SHARERS = 8  # ranks at most, which may all map the same memory
PASSED_SETTINGS = (
    "NCCL_NVLS_ENABLE",
    "NCCL_CUMEM_ENABLE",
    "TORCH_SYMM_MEM_DISABLE_MULTICAST",
    "CUDA_HOME",
    "CUDA_MODULE_LOADING",
    "LD_LIBRARY_PATH",
    "THUNDERKITTENS_ROOT",
)
READABLE = (
    "/usr",
    "/etc/ld.so.cache",
    "/etc/alternatives",
    "/sys/devices/system/cpu",
    "/sys/devices/system/node",
)


@dataclass(kw_only=True)
class Sandbox:
    """Holds a running sandbox. `init_pidfd` is its first process: when that dies, all in it dies.
    `scratch` is a folder outside that is its own, where it has no /tmp of its own."""

    process: subprocess.Popen[bytes]
    isolation: Isolation
    leaf: cgroup.Leaf | None
    limits: Limits
    freezer: Freezer | None = None
    init_pidfd: int | None = None
    init_pid: int | None = None
    scratch: str | None = None

    def __post_init__(self) -> None:
        self.pauser = Pauser(freezer=self.freezer, pids=self._processes)

    @property
    def is_alive(self) -> bool:
        """Return whether its program still runs."""
        return self.process.poll() is None

    def kill(self, timeout_s: float = 30.0) -> None:
        """Kill everything inside and wait until it is gone; raises Survivors if it stays."""
        if self.init_pidfd is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.init_pidfd, signal.SIGKILL)
        elif self.isolation is Isolation.NONE:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        if self.freezer is not None:
            self.freezer.thaw()  # on v1 what is frozen does not die
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(REAP_S)  # bubblewrap reaps its child; killed, it would leave a zombie
        self.process.kill()
        self.process.wait()
        if self.scratch is not None:
            remove_folder(self.scratch)
        if self.init_pidfd is not None:
            gone = _ends(self.init_pidfd, timeout_s)
            os.close(self.init_pidfd)
            self.init_pidfd = None
            if not gone:
                raise Survivors("the sandbox did not die within its time")
        if self.leaf is not None:
            self.leaf.settle()
        freezer, self.freezer = self.freezer, None
        if not all(own.remove(timeout_s) for own in (freezer, self.leaf) if own is not None):
            raise Survivors("the sandbox's cgroup still holds processes")

    def _processes(self) -> list[int]:
        if self.leaf is not None:
            return self.leaf.processes
        return sorted(processes.tree(self.init_pid)) if self.init_pid is not None else []

    def processor_s(self) -> float:
        """Return the seconds of a processor that the processes inside have had."""
        return sum(processes.processor_s(pid) for pid in self._processes())

    def exceeded(self) -> str | None:
        """Return `memory` or `processes` when the submission passed that limit, else None."""
        if self.leaf is not None:
            if self.leaf.oom_kills:
                return "memory"
            return "processes" if self.leaf.refused_forks else None
        if self.init_pid is None:
            return None
        inside, most = processes.tree(self.init_pid), self.limits.memory_bytes
        mapped = sum(inside.values())
        # To look at what each page is shared with takes long where there is much of it.
        if mapped > most and (mapped > MOST_SHARERS * most or processes.held_bytes(inside) > most):
            return "memory"
        return "processes" if processes.count_tasks(inside) > self.limits.processes else None

    def was_starved(self) -> bool:
        """Return whether processes were killed for memory though together they never held half of
        their limit: the host ran out of it, or a cgroup above."""
        leaf, half = self.leaf, self.limits.memory_bytes // 2
        return leaf is not None and leaf.oom_kills > 0 and leaf.most_bytes < half


def _ends(pidfd: int, timeout_s: float) -> bool:
    """Return whether a process ends within so many looks of a second. Where the host itself stands
    still, one look takes as long."""
    looks = range(math.ceil(timeout_s))
    return any(select.select([pidfd], [], [], min(1.0, timeout_s))[0] for _ in looks)


def find_bwrap() -> str | None:
    """Return bubblewrap's path: `PKB_BWRAP`, or the one on PATH; None where there is none."""
    return os.environ.get("PKB_BWRAP") or shutil.which("bwrap")


def launch(
    program: Sequence[str],
    *,
    limits: Limits,
    settings: dict[str, str],
    fds: Sequence[int],
    output_fd: int,
    devices: Sequence[str] = (),
) -> Sandbox:
    """Start `program` (run by this Python) inside the best isolation that this host offers.

    `fds` are inherited at the same numbers; stdout and stderr go to `output_fd`. `devices` are
    paths below /dev, an empty PYTHONPATH of `settings` hides our code. The thread's death kills it.
    """
    bwrap = find_bwrap()
    scratch = "/tmp" if bwrap else own_folder()
    environment = _environment(settings, scratch)
    if bwrap is None:
        before_exec, none = before_exec_of(limits), Isolation.NONE
        process = _popen([sys.executable, *program], environment, fds, output_fd, before_exec)
        return Sandbox(process=process, isolation=none, leaf=None, limits=limits, scratch=scratch)
    leaf = cgroup.create_leaf(limits.memory_bytes, limits.processes)
    guard, guard_fds = multicast_guard.arguments(settings) if devices else ([], [])
    freezer = create_freezer(leaf)
    info_read, info_write = os.pipe()
    own = [info_write, *guard_fds]
    argv = [bwrap, *guard, *_bwrap_arguments(environment, limits, devices)]
    if seccomp.is_supported():
        own.append(seccomp.program_fd())
        argv += ["--seccomp", str(own[-1])]
    argv += ["--info-fd", str(info_write), "--", sys.executable, *program]
    try:
        process = _popen(argv, {}, [*fds, *own], output_fd, before_exec_of(limits, leaf, freezer))
    finally:
        for fd in own:
            os.close(fd)
    level = Isolation.BWRAP_CGROUP_SECCOMP if leaf and seccomp.is_supported() else Isolation.BWRAP
    sandbox = Sandbox(process=process, isolation=level, leaf=leaf, limits=limits, freezer=freezer)
    _follow_init(sandbox, info_read)
    return sandbox


def _popen(
    argv: list[str],
    environment: dict[str, str],
    fds: Sequence[int],
    output_fd: int,
    before_exec: Callable[[], None],
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        argv,
        env=environment,
        pass_fds=fds,
        stdin=subprocess.DEVNULL,
        stdout=output_fd,
        stderr=output_fd,
        start_new_session=True,
        preexec_fn=before_exec,  # noqa: PLW1509 - one call, no Python locks
    )


def _follow_init(sandbox: Sandbox, info_read: int) -> None:
    """Learn the sandbox's first process from bubblewrap and hold on to it by pidfd."""
    with os.fdopen(info_read) as info:
        text = info.read()
    try:
        sandbox.init_pid = int(json.loads(text)["child-pid"])
        sandbox.init_pidfd = os.pidfd_open(sandbox.init_pid)
    except (ValueError, KeyError, ProcessLookupError):
        if sandbox.is_alive:
            return
        sandbox.kill()
        raise EvaluatorError("bubblewrap could not start a sandbox on this host") from None


def _bwrap_arguments(
    environment: dict[str, str], limits: Limits, devices: Sequence[str]
) -> list[str]:
    arguments = [
        *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net"),
        *("--unshare-cgroup-try", "--disable-userns", "--die-with-parent", "--new-session"),
        *("--uid", str(NOBODY), "--gid", str(NOBODY), "--cap-drop", "ALL"),
        *("--hostname", "sandbox", "--clearenv"),
    ]
    scratch = str(limits.scratch_bytes)
    arguments += ["--proc", "/proc", "--dev", "/dev"]
    arguments += ["--size", scratch, "--tmpfs", "/dev/shm", "--size", scratch, "--tmpfs", "/tmp"]
    # After /tmp, below which this repository may lie.
    for path in _readable_paths(with_ours=bool(environment["PYTHONPATH"])):
        arguments += ["--ro-bind", path, path]
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        if Path("/", name).is_symlink():
            arguments += ["--symlink", f"usr/{name}", f"/{name}"]
        elif Path("/", name).exists():
            arguments += ["--ro-bind", f"/{name}", f"/{name}"]
    if devices:  # NCCL and CUDA look there for how the GPUs are linked
        arguments += ["--ro-bind", "/sys", "/sys"]
    for device in devices:
        arguments += ["--dev-bind", device, device]
    for name, value in environment.items():
        arguments += ["--setenv", name, value]
    arguments += proc_mounts.arguments(with_cuda=bool(devices))
    return [*arguments, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp"]


def _readable_paths(*, with_ours: bool) -> list[str]:
    """Return the allow-list: system libraries, this interpreter, and the public code that ranks
    import."""
    ours = [str(REPOSITORY / name) for name in ("evaluator", "problems") if with_ours]
    own = [sys.base_prefix, sys.prefix, *ours]
    extra = [path for path in os.environ.get("PKB_SANDBOX_READABLE", "").split(":") if path]
    system = [path for path in (*READABLE, thunderkittens_root()) if Path(path).exists()]
    return list(dict.fromkeys(map(str, [*system, *own, *extra])))


def search_path() -> str:
    """Return where a sandbox looks for programs: first for those of installed packages."""
    cuda = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    own = (str(Path(sys.executable).parent), sysconfig.get_path("scripts"))
    return ":".join(dict.fromkeys((*own, f"{cuda}/bin", "/usr/bin", "/bin")))


def _environment(settings: dict[str, str], scratch: str) -> dict[str, str]:
    return {
        "PATH": search_path(),
        "HOME": scratch,
        "USER": "nobody",
        "TMPDIR": scratch,
        "LANG": "C.UTF-8",
        "PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'evaluator' / 'compat'}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "TORCH_EXTENSIONS_DIR": f"{scratch}/extensions",
        "TORCHINDUCTOR_CACHE_DIR": f"{scratch}/inductor",
        "TRITON_CACHE_DIR": f"{scratch}/triton",
        "GLOO_SOCKET_IFNAME": "lo",
        "NCCL_SOCKET_IFNAME": "lo",
        "KINETO_LOG_LEVEL": "99",  # torch 2.13 logs every start of its profiler
        **{name: os.environ[name] for name in PASSED_SETTINGS if name in os.environ},
        **settings,
    }
