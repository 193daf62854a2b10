"""Languages found in sources: by what they use, not by what they are called."""

from __future__ import annotations

import pytest

from evaluator.messages.languages import languages

JIT = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef kernel(x):\n    pass\n"
CUDA = 'from torch.utils.cpp_extension import load_inline\nSRC = """__global__ void f() {}"""\n'
CPP = (
    'from torch.utils.cpp_extension import load_inline\nSRC = """#include <torch/extension.h>"""\n'
)
KITTENS = CUDA + 'PK = """#include "kittens.cuh"\n"""\n'


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def solution(x):\n    return x\n", "pytorch"),
        ("", "pytorch"),
        ("def solution(:", "pytorch"),
        (JIT, "triton"),
        ("from triton import jit\n@jit\ndef kernel(x):\n    pass\n", "triton"),
        ("try:\n    import triton\nexcept ImportError:\n    pass\n", "pytorch"),
        ("import triton\nimport torch\n\n@torch.compile\ndef f(x):\n    pass\n", "pytorch"),
        ("import torch\n@torch.jit.script\ndef f(x):\n    pass\n", "pytorch"),
        ('"""import triton\n@triton.jit"""\n# import triton\n# @triton.jit\n', "pytorch"),
        (CUDA, "cuda"),
        ('S = """__global__ void f() {}"""\n', "pytorch"),
        (f"# {'__global__ load_inline'}\n", "pytorch"),
        ('from utils.cuda_helpers import compile_cuda_extension\nS = "__global__"\n', "cuda"),
        (CPP, "cpp"),
        (JIT + CUDA, "triton cuda"),
        (KITTENS, "parallelkittens"),
        (KITTENS + JIT, "parallelkittens triton"),
        ("@" * 200_000, "pytorch"),
        ("import triton\n" + "@a.jit" * 50_000, "triton"),
        ("import triton\n@torch.jit.script\ndef f(x):\n    pass\n", "pytorch"),
    ],
)
def test_a_source_is_written_in_what_it_uses(source: str, found: str) -> None:
    assert " ".join(languages(source)) == found
