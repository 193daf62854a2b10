"""Starts a kernel: its signature, and the problem's statement as its docstring."""

from __future__ import annotations

import textwrap
from argparse import Namespace
from pathlib import Path

from .agent_files import write_agent_files
from .catalogue import Parameter, problem_called
from .console import plain, say, say_json
from .credentials import site_called
from .failures import OK
from .reading import WIDTH, write_new
from .transport import segment

_TORCH = "import torch\nimport torch.distributed as dist\n"
_IMPORTS = {"pytorch": "", "triton": "import triton\nimport triton.language as tl\n"}
_COMPILED = "from torch.utils.cpp_extension import load_inline\n"


def new(arguments: Namespace) -> int:
    """Write a kernel to fill in, under a name that says its problem and its backend."""
    problem = problem_called(arguments.problem)
    site = site_called(arguments.site)
    found = site.get(f"/api/v1/problems/{segment(problem.slug)}").json()
    text = skeleton(problem.parameters, str(found["statement"]), arguments.backend)
    path = arguments.output or Path(f"{problem.folder}_{arguments.backend}.py")
    write_new(path, text.encode())
    if arguments.agent:
        told = (problem.number, problem.slug, problem.title)
        write_agent_files(path.parent, path.name, site.url, told)
    if arguments.json:
        say_json({"path": str(path), "problem": problem.folder, "backend": arguments.backend})
    else:
        say(path)
    return OK


def skeleton(parameters: tuple[Parameter, ...], statement: str, backend: str) -> str:
    """Return the source. A statement comes from a site, so it can end neither its docstring nor
    hide in it; parameters are this program's own."""
    safe = plain(statement).replace("\\", "\\\\").replace('"', '\\"')
    lines = textwrap.wrap(safe, WIDTH, break_long_words=False, break_on_hyphens=False)
    docstring = "\n".join(f"    {line}" for line in lines).strip()
    given = ",\n".join(f"    {_parameter(each)}" for each in parameters)
    return (
        f"{_TORCH}{_IMPORTS.get(backend, _COMPILED)}\n\n"
        f"def solution(\n{given},\n):\n"
        f'    """{docstring}\n    """\n'
        "    raise NotImplementedError\n"
    )


def _parameter(each: Parameter) -> str:
    default = "" if each.default is None else f" = {each.default}"
    return f"{each.name}: {each.annotation}{default}"
