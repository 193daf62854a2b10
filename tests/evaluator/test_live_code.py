"""Only code shows a need: neither messages nor branches that cannot run, and multicast in doubt."""

from __future__ import annotations

import time

import pytest

from evaluator.messages.job import Backend
from evaluator.messages.needs import Ability, beyond_processors, in_words, needs, places
from tests.evaluator.test_needs import of

AMD = "#include <hip/hip_runtime.h>"
SHMEM = "#include <nvshmem.h>"
SHMEM_CALL = "    nvshmem.put(x)"


@pytest.mark.parametrize(
    "source",
    [
        "raise RuntimeError('nvshmem is not here; nccl_device neither')",
        "raise RuntimeError(\n    f'no nvshmem_init: {error}'\n) from error",
        "assert world > 1, 'build with nvshmem'",
        "print('nvshmem', 'libnccl')",
        "warnings.warn('nvshmem: off', stacklevel=2)",
        "logger.info('%s nvshmem', x)",
        "raise RuntimeError('multimem is not supported here')",
        "REASON = 'this host has no nvshmem at all'",
        'C = """\nTORCH_CHECK(n > 0, "nvshmem_init(n) failed");\n"""',
        'C = """\nthrow std::runtime_error("no nvshmem");\nstd::cerr << "nvshmem: " << n;\n"""',
        'C = r"""\nprintf("http://x nvshmem"); /* nvshmem */ int a;\n"""',
        '"""Without nvshmem and hipcc."""\nx = "a"',
    ],
)
def test_a_message_needs_nothing(source: str) -> None:
    assert of(source) == set()


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("print(nvshmem.my_pe())", Ability.NVSHMEM),
        ("raise RuntimeError(f'{nvshmem.my_pe()} failed')", Ability.NVSHMEM),
        ("assert nvshmem.init(), 'off'", Ability.NVSHMEM),
        ("flags = ['-lnvshmem_host']", Ability.NVSHMEM),
        ("handle = ctypes.CDLL('libnccl.so.2')", Ability.NCCL_API),
        ('C = """\nTORCH_CHECK(nvshmem_init() == 0, "off");\n"""', Ability.NVSHMEM),
        ('C = """\nprintf("//"); nvshmem_init();\n"""', Ability.NVSHMEM),
        ('C = """\nasm("multimem.red.add.u32 [%0], %1;");\n"""', Ability.MULTICAST),
        ("raise RuntimeError('multimem.red.add.u32 [%0], %1;')", Ability.MULTICAST),
        ("t = 'the kernel uses multimem here'", Ability.MULTICAST),
        ("x = {1:\n'''multimem.st'''}", Ability.MULTICAST),
        ("# all\rmultimem(b)", Ability.MULTICAST),
    ],
)
def test_code_in_and_around_strings_is_a_need(source: str, found: Ability) -> None:
    assert of(source) == {found}


@pytest.mark.parametrize(
    "source",
    [
        f"if False:\n{SHMEM_CALL}\n\n{SHMEM_CALL}\nx = 1",
        f"if 0:\n{SHMEM_CALL}",
        "while False: nvshmem.put(x)",
        f"USE = False\nif USE:\n{SHMEM_CALL}\nelse:\n    dist.all_reduce(x)",
        f"USE: bool = False\ndef f():\n  if world > 1 and USE:\n{SHMEM_CALL}",
        f"USE = True\nif USE:\n    dist.all_reduce(x)\nelse:\n{SHMEM_CALL}",
        f"USE = 1\nif not USE:\n{SHMEM_CALL}",
        f"HOW = 'gloo'\nif a:\n    b\nelif HOW == 'nvshmem':\n{SHMEM_CALL}",
        f"if USE_NVSHMEM:\n{SHMEM_CALL}\nelse:\n    dist.all_reduce(x)",
        f'C = """\n#ifdef USE_ROCM\n{AMD}\n#else\n#include <cuda.h>\n#endif\n"""',
        f'C = """\n#if defined(__HIP_PLATFORM_AMD__) || defined(USE_ROCM)\n{AMD}\n#endif\n"""',
        f'C = """\n#ifndef USE_ROCM\n#include <cuda.h>\n#else\n{AMD}\n#endif\n"""',
        f'C = """\n#if 0\n#if X\n{SHMEM}\n#else\n{SHMEM}\n#endif\n{SHMEM}\n#endif\n"""',
        f'C = """\n#define OWN 0\n#if OWN\n{SHMEM}\n#elif 1\n#else\n{SHMEM}\n#endif\n"""',
        f'C = """\n#ifdef HAVE_IT\n{SHMEM}\n#endif\n"""',
        f'C = """\n#if CUDA_VERSION >= 12040\n{SHMEM}\n#else\n{SHMEM}\n#endif\n"""',
    ],
)
def test_a_branch_that_constants_rule_out_needs_nothing(source: str) -> None:
    assert of(source) == set()


@pytest.mark.parametrize(
    "source",
    [
        f"USE = False\nUSE = True\nif USE:\n{SHMEM_CALL}",
        f"USE = False\ndef f():\n    global USE\n    USE = True\nif USE:\n{SHMEM_CALL}",
        f"USE = False\nif USE or world > 1:\n{SHMEM_CALL}",
        f"if False:\n    x = 1\nelse:\n{SHMEM_CALL}",
        f"if f(a and False and b):\n{SHMEM_CALL}",
        f"if False:\n    x = 1\nif world:\n{SHMEM_CALL}",
        f"USE_NVSHMEM = True\nif USE_NVSHMEM:\n{SHMEM_CALL}\nelse:\n    dist.all_reduce(x)",
        f'C = """\n#ifndef USE_ROCM\n{SHMEM}\n#endif\n"""',
        f'C = """\n#if 0\n#else\n{SHMEM}\n#endif\n"""',
        f'C = """\n#ifdef HAVE_IT\n#endif\n{SHMEM}\n"""',
        f'C = """\n#ifndef GUARD_H\n#define GUARD_H\n{SHMEM}\n#endif\n"""',
        f'flags = ["-DHAVE_IT"]\nC = """\n#ifdef HAVE_IT\n{SHMEM}\n#endif\n"""',
        f'C = """\n#if defined(__CUDA_ARCH__)\n{SHMEM}\n#endif\n"""',
    ],
)
def test_a_branch_that_may_run_is_a_need(source: str) -> None:
    assert of(source) == {Ability.NVSHMEM}


def test_a_source_that_turns_amd_on_means_it() -> None:
    source = f'flags = ["-DUSE_ROCM"]\nC = """\n#ifdef USE_ROCM\n{AMD}\n#endif\n"""'
    assert of(source) == {Ability.HIP}


@pytest.mark.parametrize(
    "source",
    [
        "if False:\n    multimem(b)",
        "USE = False\nif USE:\n    multimem(b)",
        'C = """\n#if 0\nmultimem.st\n#endif\n"""',
        'C = """\n#ifdef HAVE_IT\nmultimem.st\n#endif\n"""',
    ],
)
def test_no_branch_hides_multicast(source: str) -> None:
    assert of(source) == {Ability.MULTICAST}


def test_a_need_has_its_first_word_and_line() -> None:
    assembly = 'asm("multimem.ld_reduce.x [a];");'
    source = f'# nvshmem\nC = r"""\n// multimem\n{SHMEM}\n{assembly}\n"""'
    assert places(source) == {
        Ability.NVSHMEM: ("nvshmem.h", 4),
        Ability.MULTICAST: ("multimem.ld_reduce", 5),
    }
    named = in_words({Ability.NCCL, Ability.MULTICAST}, source)
    assert named == ["NCCL", "NVLink multicast (multimem.ld_reduce, line 5)"]
    assert beyond_processors("\nx.cuda()") == "a GPU (.cuda, line 2)"


@pytest.mark.parametrize(
    "unit",
    [
        *("(", ")", "'", '"""', "'''\\", "\\", "if x:\n", " if False:\n", "USE = 0\n", "not "),
        *('"""\n#if 0\n', '"""\n#if !(', 'R"x(', '"""R"(', "a.b", "/*", "print(", "\f", "\r"),
    ],
)
def test_hostile_text_is_read_in_time_that_grows_with_its_length(unit: str) -> None:
    begun = time.process_time()
    source = unit * ((64 << 10) // len(unit))
    needs(source, Backend.CUDA, world_size=2)
    beyond_processors(source)
    assert time.process_time() - begun < 10
