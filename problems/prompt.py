"""Makes the part of a prompt that is about one problem: what a model is given of it.

Standard library only. A problem comes as the catalogue has it, from `fixtures/problems.json` or of
today's code (`problems.catalogue.told`). Recipes, examples and what is known of other tries are
those of whoever asks.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from textwrap import fill
from typing import Any

from .limits import TERMS, limits_of
from .statement import listed

LINE = 100  # characters
DIALECTS: Mapping[str, str] = {
    "pytorch": "Write plain PyTorch: tensor operations, torch.distributed and torch.compile; on "
    "GPUs also CUDA graphs and torch.distributed._symmetric_memory. No source of another language.",
    "triton": "Write Triton kernels (`triton`, `triton.language`) and the Python that launches "
    "them. Kernels reach peers' memory through torch.distributed._symmetric_memory: allocate with "
    "`empty`, exchange addresses once with `rendezvous(tensor, group)`, and hand kernels the "
    "handle's `buffer_ptrs_dev` and `signal_pad_ptrs_dev`, the addresses of tables of 64-bit "
    "pointers with an entry a rank. Signal with tl.atomic_cas or tl.atomic_xchg, with sem "
    '"release" or "acquire" and scope="sys". `utils.triton_utils` has `blockwise_barrier`.',
    "cuda": "Write CUDA C++ in a string of the file and compile it when the file is imported, with "
    "torch.utils.cpp_extension.load_inline or with compile_cuda_extension(name, cuda_src) from "
    "utils.cuda_helpers, whose source has its own PYBIND11_MODULE. Kernels reach peers' memory "
    "through torch.distributed._symmetric_memory: allocate with `empty`, exchange addresses once "
    "with `rendezvous(tensor, group)`, and pass the handle's `buffer_ptrs_dev` and "
    "`signal_pad_ptrs_dev`, the addresses of tables of 64-bit pointers with an entry a rank. "
    "Signals between GPUs need release and acquire of system scope.",
    "parallelkittens": "Write CUDA C++ with ThunderKittens' headers (`kittens.cuh`) in a string of "
    "the file and compile it when the file is imported, with compile_cuda_extension(name, "
    "cuda_src) from utils.cuda_helpers. Tensors that all ranks reach come from "
    "get_or_create_parallel_tensor of utils.parallelkittens_runtime, with multicast=False.",
}
FENCED = "Answer with the whole file in one fenced block that begins with ```python.\n"
RULES = """\
* The file is imported once in each of {world_size} processes, one a rank, in a sandbox without a
  network. The process group exists already. On GPUs each process has its own as current device.
* Every rank calls `solution` with positional arguments, many times, and its result has to be right
  on every rank each time: shapes, values, options and routing change from call to call.
  Nothing of a call may be kept for the next but buffers, their addresses and what was compiled.
* Calls come back to back, on the current stream. A call may begin on one rank while another still
  reads what the last one left, so buffers that peers reach must not be overwritten too early.
* Every element of every output is compared with the exact answer, in {dtype}.
{limits}
* Correct kernels are timed against the reference as it stands above, on NCCL where there are GPUs;
  the speedup is what counts then.
* What `solution` has not done or put on the current stream when it returns counts as not done, and
  so does what it answers from the data of another call."""


def prompt(
    problem: Mapping[str, Any],
    *,
    backend: str,
    hardware_text: str,
    world_size: int,
    dtype: str,
    size: str,
) -> str:
    """Return the problem as a model is given it; add how to answer, such as FENCED. Raises
    ValueError for what the problem or this module does not have."""
    _check(problem, {"backend": (backend, DIALECTS), "size": (size, problem["sizes"])})
    _check(problem, {"dtype": (dtype, problem["tolerances"])})
    _check(problem, {"number of ranks": (world_size, problem["world_sizes"])})
    rules = RULES.format(world_size=world_size, dtype=dtype, limits=_limits(problem, dtype))
    parts = {
        f"Problem {problem['number']}: {problem['title']}": listed(problem["statement"]),
        "Signature": _code(signature(problem["reference_source"])),
        "Reference": _code(problem["reference_source"].rstrip()),
        "Where it runs": hardware_text,
        "What is timed": _timed(problem, world_size, dtype, size),
        "How it is judged": rules,
        f"Backend: {backend}": DIALECTS[backend],
        "Answer": f"Write one Python file, {file_name(problem, backend)}, that defines `solution` "
        "with the signature above.",
    }
    return "\n".join(f"## {title}\n\n{text}\n" for title, text in parts.items())


def file_name(problem: Mapping[str, Any], backend: str) -> str:
    """Return the name under which a kernel is handed in: `13_gemm_allreduce_cuda.py`."""
    return f"{problem['number']}_{problem['slug']}_{backend}.py"


def signature(reference_source: str) -> str:
    """Return the first line of `solution`: that of the reference under this name."""
    body = ast.parse(reference_source).body
    found = next(node for node in body if getattr(node, "name", None) == "reference")
    assert isinstance(found, ast.FunctionDef)
    returned = f" -> {ast.unparse(found.returns)}" if found.returns else ""
    return f"def solution({ast.unparse(found.args)}){returned}: ..."


def _check(problem: Mapping[str, Any], asked: Mapping[str, tuple[object, Any]]) -> None:
    for what, (value, known) in asked.items():
        if value not in known:
            some = ", ".join(map(str, known))
            raise ValueError(f"{problem['slug']} has no {what} {value}: use {some}")


def _code(text: str) -> str:
    return f"```python\n{text}\n```"


def _limits(problem: Mapping[str, Any], dtype: str) -> str:
    found = [f"- {', '.join(one.outputs)}: {one.words}" for one in limits_of(problem, dtype)]
    return "\n".join([_lines(TERMS, "  "), *(_lines(text, "    ") for text in found)])


def _lines(text: str, indent: str) -> str:
    """Return a text in lines of a prompt's width; an item's `- ` hangs."""
    first = indent[:-2] if text.startswith("- ") else indent
    return fill(
        text,
        LINE,
        initial_indent=first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _timed(problem: Mapping[str, Any], world_size: int, dtype: str, size: str) -> str:
    """Say the arguments and the least work. Costs of the catalogue are those of bfloat16."""
    cost = problem["costs"][size][str(world_size)]
    larger, steps = 2 if dtype == "float32" else 1, cost["exchanges"]
    waits = "one exchange" if steps == 1 else f"{steps} exchanges that must wait for each other"
    given = timed_arguments(problem, world_size, dtype, size)
    work = (
        "The busiest rank of a timed call must at least send or receive "
        f"{_bytes(cost['wire_bytes'] * larger)}, in {waits}, move "
        f"{_bytes(cost['hbm_bytes'] * larger)} through its memory and do {_count(cost['flops'])} "
        "floating-point operations."
    )
    return "\n".join(
        [
            f"Calls on {world_size} ranks, in {dtype}, size `{size}`. Each rank is given:",
            "",
            *(_lines(f"- {name}: {words}", "  ") for name, words in given.items()),
            "",
            "If a line has several values or lengths, each call has one of them.",
            "Other calls, which are not timed, have odd and smaller shapes.",
            work,
        ]
    )


def timed_arguments(
    problem: Mapping[str, Any], world_size: int, dtype: str, size: str
) -> dict[str, str]:
    """Return words for each argument of a timed call, by name: `bfloat16 [16, 4, 8, 64]`; none of a
    catalogue that is older than these words."""
    found: Mapping[str, str | Mapping[str, str]]
    found = problem.get("timed_arguments", {}).get(size, {})
    words = {n: w if isinstance(w, str) else w[str(world_size)] for n, w in found.items()}
    return {name: each.replace("{dtype}", dtype) for name, each in words.items()}


def _count(operations: float) -> str:
    """Return a number of operations: whole below a million, else to three digits."""
    return f"{operations:,.0f}" if operations < 1e6 else f"{operations:.3g}"


def _bytes(count: float) -> str:
    """Return a number of bytes to three digits, in the largest unit that leaves one or more."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.4g} GiB"
