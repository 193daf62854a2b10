"""No process of a sandbox gets to the driver's multicast calls, whichever way it asks for them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from evaluator.host.host import MULTICAST_OFF
from evaluator.messages.job import Job, Limits
from evaluator.messages.report import Report, Verdict
from evaluator.sandbox import multicast_guard, sandbox
from tests.evaluator.fake_cuda import SAYS_CREATED, build, build_driver
from tests.evaluator.judging import judged_by

pytestmark = [
    pytest.mark.skipif(sandbox.find_bwrap() is None, reason="bubblewrap is not installed"),
    pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no C compiler"),
]
LIMITS = Limits(memory_bytes=256 << 20, processes=32, scratch_bytes=8 << 20)
ON = {**MULTICAST_OFF, "NCCL_NVLS_ENABLE": "1"}

_LINKED = """
int cuMulticastCreate(void *, void *);
int go(void) { return cuMulticastCreate(0, 0); }
"""
_ASKS_WITH_A_VERSION = """
#define _GNU_SOURCE
#include <dlfcn.h>
int go(const char *driver) {
    void *handle = dlopen(driver, RTLD_NOW);
    void *(*ask)(void *, const char *) = dlvsym(RTLD_DEFAULT, "dlsym", "GLIBC_2.2.5");
    int (*create)(void *, void *) = ask(handle, "cuMulticastCreate");
    return create(0, 0);
}
"""
_ASKS_FOR_THE_NEXT = """
#define _GNU_SOURCE
#include <dlfcn.h>
int twice(int x) { int (*next)(int) = dlsym(RTLD_NEXT, "twice"); return 2 * next(x); }
"""
_NEXT = "int twice(int x) { return x + 1; }"
_PRINTS = '#include <stdio.h>\nint twice(int); int main(void) { printf("%d\\n", twice(3)); }'
_PROGRAM = "int go(const char *); int main(int n, char **words) { return go(words[1]); }"


@dataclass(frozen=True, kw_only=True)
class Ended:
    status: int
    output: str


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a driver and with what asks for it."""
    folder = tmp_path_factory.mktemp("driver")
    driver = build_driver(folder)
    build(folder, "liblinked.so", _LINKED, str(driver), f"-Wl,-rpath,{folder}")
    asks = build(folder, "libasks.so", _ASKS_WITH_A_VERSION)
    build(folder, "program", _PROGRAM, "-pie", str(asks), f"-Wl,-rpath,{folder}")
    follows = build(folder, "libnext.so", _NEXT)
    first = build(folder, "libfirst.so", _ASKS_FOR_THE_NEXT)
    both = ["-Wl,--no-as-needed", str(first), str(follows), f"-Wl,-rpath,{folder}"]
    build(folder, "prints", _PRINTS, "-pie", *both)
    return folder


def run(
    made: Path, code: str, monkeypatch: pytest.MonkeyPatch, settings: Mapping[str, str]
) -> Ended:
    """What becomes of Python code in a sandbox that has a device; it finds `cuda` and `folder`."""
    monkeypatch.setenv("PKB_SANDBOX_READABLE", str(made))
    prelude = f"import ctypes, os, subprocess; folder = {str(made)!r}\n"
    prelude += "cuda = ctypes.CDLL(folder + '/libcuda.so.1')\n"
    output = os.memfd_create("output")
    box = sandbox.launch(
        ["-c", prelude + code],
        limits=LIMITS,
        settings=dict(settings),
        fds=[],
        output_fd=output,
        devices=["/dev/null"],
    )
    status = box.process.wait(30)
    box.kill()
    with os.fdopen(output, "rb") as file:
        file.seek(0)
        return Ended(status=status, output=file.read().decode())


LOOKUP = """
found, status = ctypes.c_void_p(), ctypes.c_int()
name, version, flags = b"cuMulticastCreate", 12010, ctypes.c_uint64(0)
call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
"""
WAYS = {
    "dlsym": "cuda.cuMulticastCreate(None, None)",
    "a newer name": "cuda.cuMulticastBindMem_v2()",
    "a name that is put together": "getattr(cuda, 'cuMulti' + 'castCreate')(None, None)",
    "linked": "ctypes.CDLL(folder + '/liblinked.so').go()",
    "dlvsym": "ctypes.CDLL(folder + '/libasks.so').go((folder + '/libcuda.so.1').encode())",
    "dlsym of libc": "libc = ctypes.CDLL('libc.so.6')\nlibc.dlsym.restype = ctypes.c_void_p\n"
    "address = libc.dlsym(ctypes.c_void_p(cuda._handle), b'cuMulticastCreate')\n"
    "ctypes.CFUNCTYPE(ctypes.c_int)(address)()",
    "cuGetProcAddress": f"{LOOKUP}cuda.cuGetProcAddress(name, ctypes.byref(found), 11080, flags)\n"
    "call(found.value)(None, None)",
    "cuGetProcAddress_v2": f"{LOOKUP}cuda.cuGetProcAddress_v2(name, ctypes.byref(found), version,"
    " flags, ctypes.byref(status))\nassert status.value == 7\ncall(found.value)(None, None)",
    "cuGetProcAddress of itself": f"{LOOKUP}cuda.cuGetProcAddress(b'cuGetProcAddress',"
    " ctypes.byref(found), version, flags)\n"
    "ask = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int,"
    " ctypes.c_uint64, ctypes.c_void_p)(found.value)\n"
    "ask(name, ctypes.addressof(found), version, 0, ctypes.addressof(status))\n"
    "call(found.value)(None, None)",
    "a copy of the driver": "import shutil; shutil.copy(folder + '/libcuda.so.1', '/tmp/x.so')\n"
    "ctypes.CDLL('/tmp/x.so').cuMulticastCreate(None, None)",
    "a program without an environment": "subprocess.run([folder + '/program',"
    " folder + '/libcuda.so.1'], env={})",
    "a forked process": "if os.fork() == 0:\n cuda.cuMulticastCreate(None, None)\nos.wait()",
}


@pytest.mark.parametrize("way", WAYS)
def test_a_call_ends_the_sandbox_and_does_not_reach_the_driver(
    way: str, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = f"{WAYS[way]}\nimport time; time.sleep(2); print('went on')"
    ended = run(made, code, monkeypatch, MULTICAST_OFF)
    assert "multicast is off" in ended.output
    assert SAYS_CREATED not in ended.output
    assert "went on" not in ended.output
    assert multicast_guard.has_ended(ended.status), ended


@pytest.mark.parametrize("way", WAYS)
def test_each_way_leads_to_the_driver_where_multicast_is_on(
    way: str, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = run(made, WAYS[way], monkeypatch, ON)
    assert SAYS_CREATED in ended.output, ended
    assert not multicast_guard.has_ended(ended.status)


def test_a_process_in_a_session_of_its_own_dies_alone(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "if os.fork() == 0:\n os.setsid()\n cuda.cuMulticastCreate(None, None)\n"
    code += "print(os.waitstatus_to_exitcode(os.wait()[1]))"
    ended = run(made, code, monkeypatch, MULTICAST_OFF)
    assert SAYS_CREATED not in ended.output
    assert f"\n-{multicast_guard.ENDING_SIGNAL}\n" in ended.output


def test_asking_without_calling_ends_nobody(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = f"{LOOKUP}cuda.cuMulticastCreate\n"
    code += "assert cuda.cuGetProcAddress(name, ctypes.byref(found), version, flags) == 0\n"
    code += "assert cuda.cuGetProcAddress(b'cuInit', ctypes.byref(found), version, flags) == 0\n"
    code += "assert call(found.value)(None, None) == 0\n"
    code += "assert cuda.cuGetProcAddress(b'cuX', ctypes.byref(found), version, flags) == 500\n"
    code += "print(hasattr(ctypes.CDLL('libc.so.6'), 'cuMulticastCreate'))"
    ended = run(made, code, monkeypatch, MULTICAST_OFF)
    assert (ended.status, ended.output) == (0, "False\n")


def test_whoever_asks_is_told_that_there_is_no_multicast(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "value = ctypes.c_int()\nfor attribute in (132, 75):\n"
    code += " assert cuda.cuDeviceGetAttribute(ctypes.byref(value), attribute, 0) == 0\n"
    code += " print(value.value)"
    assert run(made, code, monkeypatch, MULTICAST_OFF).output == "0\n75\n"
    assert run(made, code, monkeypatch, ON).output == "132\n75\n"


def test_the_next_of_a_name_is_still_the_askers_next(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "subprocess.run([folder + '/prints'])"
    assert run(made, code, monkeypatch, MULTICAST_OFF).output == "8\n"


def test_without_a_compiler_nothing_is_loaded(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multicast_guard, "_compiled", lambda: None)
    assert not multicast_guard.is_available()
    code = "print(os.path.exists('/etc/ld.so.preload'))"
    assert run(made, code, monkeypatch, MULTICAST_OFF).output == "False\n"


KERNEL = """
import ctypes, subprocess
import torch.distributed as dist
folder = {folder!r}

def reach():
    {reach}

def solution(tensor):
    reach()
    out = tensor.clone()
    dist.all_reduce(out)
    return out
"""
REACHES = (
    "getattr(ctypes.CDLL(folder + '/libcuda.so.1'), 'cuMulti' + 'castCreate')(None, None)",
    "subprocess.run([folder + '/program', folder + '/libcuda.so.1'], env={})",
)


@pytest.mark.parametrize("reach", REACHES)
def test_a_kernel_that_hides_its_call_breaks_the_protocol(
    reach: str, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = _judged(reach, made, monkeypatch, "with_device")
    assert (report.verdict, report.cause) == (Verdict.PROTOCOL_VIOLATION, "multicast")
    assert not any(SAYS_CREATED in log.text for log in report.logs)


@pytest.mark.parametrize("reach", REACHES)
def test_without_the_guard_it_gets_to_the_driver_and_is_ok(
    reach: str, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = _judged(reach, made, monkeypatch, "no_multicast_guard")
    assert report.verdict is Verdict.OK
    assert any(SAYS_CREATED in log.text for log in report.logs)


def _judged(reach: str, made: Path, monkeypatch: pytest.MonkeyPatch, variation: str) -> Report:
    monkeypatch.setenv("PKB_SANDBOX_READABLE", str(made))
    source = KERNEL.format(folder=str(made), reach=reach)
    return judged_by(variation, Job(problem="allreduce", source=source))
