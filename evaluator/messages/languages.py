"""Finds in a kernel's text in which languages it is written, whatever it was handed in as."""

from __future__ import annotations

import re

from evaluator.messages.job import Backend
from evaluator.messages.needs import includes_thunderkittens
from evaluator.messages.source_text import without_comments

# Each pattern has to be there: who imports Triton and compiles nothing with it does not use it.
_SHOWN_BY = {
    Backend.TRITON: (
        re.compile(r"^[ \t]*(?:import|from)[ \t]+triton\b", re.MULTILINE),
        re.compile(r"^[ \t]*@[ \t]*(?!torch\b)(?:[A-Za-z_]\w{0,40}\.)?jit\b", re.MULTILINE),
    ),
    Backend.CUDA: (
        re.compile(r"\b__global__\b"),
        re.compile(
            r"\bload_inline\b|\bcompile_cuda_extension\b|\bcpp_extension\b|\bnvrtc|\bRawKernel\b"
        ),
    ),
    Backend.CPP: (
        re.compile(r"#\s{0,9}include\s{0,9}[<\"]|\bTORCH_LIBRARY\b|\bPYBIND11_MODULE\b"),
        re.compile(r"\bload_inline\b|\bcpp_extension\b"),
    ),
}


def languages(source: str) -> tuple[Backend, ...]:
    """Return the languages that a source uses to make kernels; PyTorch alone where it uses none.

    ThunderKittens and C++ that holds CUDA are not named twice. It looks at text, comments apart,
    and runs nothing: a source can claim a language, but not by a comment or an idle import.
    """
    code = without_comments(source)
    found = [one for one, shown in _SHOWN_BY.items() if all(part.search(code) for part in shown)]
    if includes_thunderkittens(code):
        found = [Backend.PARALLELKITTENS, *(one for one in found if one is Backend.TRITON)]
    elif Backend.CUDA in found:
        found = [one for one in found if one is not Backend.CPP]
    return tuple(found) or (Backend.PYTORCH,)
