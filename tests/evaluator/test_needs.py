"""What sources need of a host, in the idioms of published kernels."""

from __future__ import annotations

import pytest

from evaluator.messages.job import Backend, Placement
from evaluator.messages.needs import (
    BETWEEN_GPUS,
    Ability,
    fixed_ranks,
    needs,
)

ALWAYS = {Ability.NCCL, Ability.PEER_ACCESS}
PARALLEL_TENSOR = "x = get_or_create_parallel_tensor(\n    ext, (w, 1), torch.bfloat16{}\n)\n"
KITTENS = '#include "kittens.cuh"\n'


def of(source: str, backend: Backend = Backend.PYTORCH, ranks: int = 4) -> set[Ability]:
    return set(needs(source, backend, world_size=ranks)) - ALWAYS


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("dist.all_reduce(x)", set()),
        ("import torch.distributed._symmetric_memory as s", {Ability.SYMMETRIC_MEMORY}),
        ("from torch._C._distributed_c10d import _SymmetricMemory", {Ability.SYMMETRIC_MEMORY}),
        ("ext.launch(int(hdl.multicast_ptr), n)", {Ability.MULTICAST}),
        ("torch.ops.x.multimem_all_reduce_(b, 'sum', g)", {Ability.MULTICAST}),
        ('CUDA = r"""\nmultimem.ld_reduce.sys.add.f32 %0, [%1];\n"""', {Ability.MULTICAST}),
        ('CUDA = r"""\ncuMulticastCreate(&handle, &prop);\n"""', {Ability.MULTICAST}),
        ("barrier = get_or_create_barrier(ext, num_devices=world)", {Ability.MULTICAST}),
        ('C = """\nbarrier_t<globals::NUM_DEVICES> barrier;\n"""', {Ability.MULTICAST}),
        (PARALLEL_TENSOR.format(""), {Ability.MULTICAST}),
        (PARALLEL_TENSOR.format(", multicast=True"), {Ability.MULTICAST}),
        (PARALLEL_TENSOR.format(", multicast=False"), set()),
        ('os.environ["NCCL_NVLS_ENABLE"] = "1"', {Ability.MULTICAST}),
        ('os.environ["NCCL_NVLS_ENABLE"] = "0"', set()),
        ('os.environ.setdefault("TORCH_SYMM_MEM_DISABLE_MULTICAST", "0")', {Ability.MULTICAST}),
        ("import triton\nimport triton.language as tl", {Ability.TRITON}),
        ("torch._inductor.config.triton.cudagraphs = True", set()),
        ("load_inline(name='x', cuda_sources=CUDA)", {Ability.NVCC}),
        ('C = """\n#include "kittens.cuh"\n"""', {Ability.THUNDERKITTENS}),
        ("from utils.parallelkittens_runtime import x", {Ability.THUNDERKITTENS}),
        ('C = """\nnvshmem_float_put(a, b, n, pe);\n"""', {Ability.NVSHMEM}),
        ("s.set_backend('NVSHMEM')", {Ability.NVSHMEM}),
        ('C = """\n#include <nccl_device.h>\n"""', {Ability.NCCL_DEVICE_API}),
        ('C = """\nncclGin gin{comm, 0};\n"""', {Ability.NCCL_DEVICE_API}),
        ('C = """\n#include <hip/hip_runtime.h>\n"""', {Ability.HIP}),
    ],
)  # fmt: skip
def test_a_use_is_a_need(source: str, found: set[Ability]) -> None:
    assert of(source) == found


def test_a_comment_needs_nothing() -> None:
    assert of("# no multimem here\n'''nor nvshmem here'''\n") == set()
    assert of('C = """\n// multimem.st would be faster\n"""') == set()
    assert of("class A:\n    'multicast=True is not'\n    x = 1\n") == set()
    assert of("def f(): return 1  # nvshmem_put\n") == set()
    assert of("print(f.__doc__)\ndef f():\n    'multimem.st'\n") == {Ability.MULTICAST}


@pytest.mark.parametrize(
    "source",
    [
        "if hdl.multicast_ptr:\n    fast(hdl.multicast_ptr)\nelse:\n    slow()",
        "if hdl.multicast_ptr == 0:\n    logger.warning(\n        'off'\n    )\n    return\n",
        "has_mc = hdl.multicast_ptr != 0\nif has_mc:\n    fast(hdl.multicast_ptr)",
        "self._mc = int(hdl.multicast_ptr)\nif self._mc == 0:\n    return slow()",
        "mc = hdl.multicast_ptr\ny = multimem(mc) if mc else slow()",
        "if _SymmetricMemory.has_multicast_support(kind, 0):\n    torch.ops.s.multimem_x(b)",
        "try:\n    torch.ops.s.multimem_x(b)\nexcept RuntimeError:\n    dist.all_reduce(b)",
        'C = """\nif (multicast_ptr == nullptr) { slow(); }\nelse multimem_st(multicast_ptr);\n"""',
        'C = """\nif (ask(CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED)) cuMulticastCreate(&h);\n"""',
        "try:\n    import triton\nexcept ImportError:\n    triton = None",
        "if s.is_nvshmem_available():\n    s.set_backend('NVSHMEM')",
        'C = """\n#ifdef __HIP_PLATFORM_AMD__\n#include <hip/hip_runtime.h>\n#endif\n"""',
    ],
)  # fmt: skip
def test_what_is_asked_first_is_wanted_and_not_needed(source: str) -> None:
    assert of(source) == set()


@pytest.mark.parametrize(
    "source",
    [
        "assert hdl.multicast_ptr != 0, 'no multicast'\nfast(hdl.multicast_ptr)",
        "if not hdl.multicast_ptr:\n    # nothing else is here\n    raise RuntimeError('off')",
        "if hdl.multicast_ptr == 0:\n    raise RuntimeError('off')\nfast(hdl.multicast_ptr)",
        "mc = hdl.multicast_ptr\nassert mc != 0\nfast(mc)",
        "p = buf.data_ptr() if hdl is None else hdl.multicast_ptr",
        "kernel(b=hdl.multicast_ptr)\nif b > 0:\n    pass",
        "try:\n    multimem(b)\nexcept RuntimeError as error:\n    raise ValueError from error",
        "try:\n    multimem(b)\nfinally:\n    done()",
        "if rank == 0: fast(hdl.multicast_ptr)",
        'C = """\nif (threadIdx.x == 0) multimem_st(multicast_ptr);\n"""',
        'C = """\nauto p = reinterpret_cast<uint64_t>(multicast_ptr);\n"""',
        'C = """\nTORCH_CHECK(multicast_ptr != 0, "no multicast");\n"""',
    ],
)
def test_what_is_demanded_is_needed(source: str) -> None:
    assert of(source) == {Ability.MULTICAST}


def test_backend_and_problem_have_needs_of_their_own() -> None:
    assert of("x", Backend.CUDA) == {Ability.NVCC}
    assert of("x", Backend.PARALLELKITTENS) == {Ability.NVCC, Ability.THUNDERKITTENS}
    assert of("x", Backend.TRITON) == {Ability.TRITON}
    alone = needs("x", Backend.PYTORCH, world_size=2, peer_access=False, multicast=True)
    assert alone == {Ability.NCCL, Ability.MULTICAST}


@pytest.mark.parametrize(
    ("source", "ranks"),
    [
        ('C = """\n  static constexpr int NUM_DEVICES = 8;\n"""', {8}),
        ('C = """\n#define NUM_DEVICES 8\n"""', {8}),
        ("NUM_DEVICES = 8", {8}),
        ("NUM_DEVICES: int = 4", {4}),
        ("NUM_DEVICES = 8\nassert world_size == NUM_DEVICES", {8}),
        ("NUM_DEVICES = 8\nif dist.get_world_size() == 1:\n    return x", {8}),
        ("NUM_DEVICES = 4\nC = 'constexpr int NUM_DEVICES = 8;'", {4, 8}),
        ("NUM_DEVICES = dist.get_world_size()", set()),
        ("MAX_NUM_DEVICES = 8", set()),
        ('C = """\n#ifndef NUM_DEVICES\n#define NUM_DEVICES 8\n#endif\n"""', set()),
        ('flags = [f"-DNUM_DEVICES={world}"]\nC = "#define NUM_DEVICES 8"', set()),
        ("NUM_DEVICES = 8\nif world_size != NUM_DEVICES:\n    return slow(x)", set()),
    ],
)
def test_ranks_that_a_source_fixes(source: str, ranks: set[int]) -> None:
    assert fixed_ranks(source) == ranks


def test_parallelkittens_for_eight_ranks_needs_eight() -> None:
    source = f'C = r"""\n{KITTENS}static constexpr int NUM_DEVICES = 8;\n"""'
    assert Ability.OTHER_RANKS in of(source, Backend.PARALLELKITTENS, ranks=4)
    assert Ability.OTHER_RANKS not in of(source, Backend.PARALLELKITTENS, ranks=8)
    assert of("NUM_DEVICES = 8", ranks=4) == set()


def test_every_ability_has_a_label() -> None:
    assert len({ability.label for ability in Ability}) == len(Ability)


@pytest.mark.parametrize(
    "source",
    [
        'C = """\n#include <nccl.h>\n"""',
        'C = """\nncclAllReduce(a, b, n, ncclFloat, ncclSum, comm, stream);\n"""',
        "torch.cuda.nccl.all_reduce([x])",
        "s.set_backend('NCCL')",
    ],
)
def test_nccl_itself_is_more_than_torch_distributed(source: str) -> None:
    assert of(source) == {Ability.NCCL_API}
    assert of("dist.init_process_group('nccl')\nos.environ['NCCL_DEBUG']") == set()


def test_ranks_that_share_a_gpu_need_nothing_between_gpus_but_what_the_source_names() -> None:
    def shared(source: str) -> frozenset[Ability]:
        return needs(source, Backend.TRITON, world_size=4, placement=Placement.SHARED)

    assert shared("dist.all_reduce(x)") == {Ability.TRITON}
    assert shared("fast(hdl.multicast_ptr)") & BETWEEN_GPUS == {Ability.MULTICAST}
    assert not BETWEEN_GPUS & ALWAYS
