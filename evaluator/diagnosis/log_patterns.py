"""Lists how failures show in text: what compilers, CUDA, Triton and torch print, and its cause.

The text is the submission's own, so a forged line can only change what is said of a failure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from evaluator.messages.report import Verdict
from evaluator.messages.text import plain_text

MAX_EVIDENCE = 500


@dataclass(frozen=True, kw_only=True)
class Sign:
    """Describes one way in which a cause shows. `verdict` None: the stage decides."""

    cause: str
    pattern: re.Pattern[str]
    verdict: Verdict | None = None


@dataclass(frozen=True, kw_only=True)
class Sighting:
    """Holds a sign in a text, with the line that shows it; `at` is where it begins."""

    sign: Sign
    at: int
    line: str


Signs = tuple[Sign, ...]


def first_sighting(text: str, signs: Iterable[Sign]) -> Sighting | None:
    """Return the sign that shows first in a text; source lines that a traceback quotes show
    nothing."""
    found = [sighting for sign in signs if (sighting := _sighting(text, sign))]
    return min(found, key=lambda sighting: sighting.at, default=None)


def _sighting(text: str, sign: Sign) -> Sighting | None:
    for match in sign.pattern.finditer(text):
        begin = text.rfind("\n", 0, match.start()) + 1
        if not _is_quoted(text, begin):
            return Sighting(sign=sign, at=match.start(), line=_line(text, begin, match))
    return None


def _is_quoted(text: str, begin: int) -> bool:
    above = text[text.rfind("\n", 0, max(begin - 1, 0)) + 1 : begin]
    return above.startswith('  File "') and text.startswith("    ", begin)


def _line(text: str, begin: int, match: re.Match[str]) -> str:
    """Return the line of a match, and what the sign marks as `told` further down."""
    end = text.find("\n", match.start())
    line = text[max(begin, match.start() - 200) : end if end >= 0 else None].strip()
    told = match.groupdict().get("told")
    return plain_text(f"{line} {told.strip()}" if told else line, MAX_EVIDENCE)


def _signs(verdict: Verdict | None, causes: dict[str, str]) -> Signs:
    return tuple(
        Sign(cause=cause, pattern=re.compile(pattern, re.MULTILINE), verdict=verdict)
        for cause, pattern in causes.items()
    )


# Of a cause's alternatives none may begin with something unbounded: logs are long and hostile.
BUILD = _signs(
    Verdict.BUILD_ERROR,
    {
        "ninja_missing": r"Ninja is required to load C\+\+ extensions",
        "ptxas": r"^ptxas [^\n]{0,300}(?:error|fatal) *: ",
        "linker": r"undefined reference to |undefined symbol: |multiple definition of "
        r"|^\S{0,200}ld: cannot find |^nvlink (?:error|fatal)|^collect2: error: ",
        "compiler": r"^[^\s:][^\n:]{0,300}(?::\d+){1,2}: (?:fatal )?error: "
        r"|^[^\s(][^\n(]{0,300}\(\d+\): (?:catastrophic |internal )?error\b"
        r"|^nvcc (?:fatal|error) |^\S{0,200}(?:cc1plus|c\+\+|g\+\+|gcc): (?:fatal )?error: ",
        "triton_resources": r"out of resource: |^[\w.]{0,99}OutOfResources\b",
        "triton_compile": r"^[\w.]{0,99}CompilationError: at \d+:\d+:"
        r"(?:(?:\n[^\n]*){1,20}?\n *\^\n(?P<told>[^\n]+))?"
        r"|^[\w.]{0,99}(?:UnsupportedLanguageConstruct|CompileTimeAssertionFailure): "
        r"|PassManager::run failed|Internal Triton PTX codegen error",
        "syntax": r"^(?:SyntaxError|IndentationError|TabError): ",
    },
)

_CUDA = r"(?:CUDA (?:driver )?[Ee]rror: |Triton Error \[CUDA\]: |Cuda failure[^\n']{0,20}')"

MEMORY = _signs(
    Verdict.OOM,
    {
        "gpu_memory": rf"CUDA out of memory|{_CUDA}out of memory|cudaErrorMemoryAllocation"
        r"|CUDA_ERROR_OUT_OF_MEMORY|^(?:torch\.)?(?:cuda\.)?OutOfMemoryError\b",
        "memory": r"DefaultCPUAllocator: |^MemoryError\b|^terminate [^\n]{0,60}'std::bad_alloc'"
        r"|^OSError: \[Errno 12\]",
    },
)

# The texts of cudaGetErrorString, and the names of the codes.
GPU = _signs(
    None,
    {
        "illegal_access": r"an illegal memory access was encountered|cudaErrorIllegalAddress"
        r"|CUDA_ERROR_ILLEGAL_ADDRESS",
        "misaligned_access": rf"{_CUDA}misaligned address|cudaErrorMisalignedAddress"
        r"|CUDA_ERROR_MISALIGNED_ADDRESS",
        "illegal_instruction": r"an illegal instruction was encountered"
        r"|cudaErrorIllegalInstruction|CUDA_ERROR_ILLEGAL_INSTRUCTION",
        "device_assert": r"device-side assert triggered|cudaErrorAssert|CUDA_ERROR_ASSERT"
        r"|block: \[\d+,\d+,\d+\], thread: \[\d+,\d+,\d+\] Assertion",
        "launch_failure": r"unspecified launch failure|cudaErrorLaunchFailure"
        r"|CUDA_ERROR_LAUNCH_FAILED",
        "launch_resources": r"too many resources requested for launch"
        r"|cudaErrorLaunchOutOfResources|CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
        "invalid_configuration": r"invalid configuration argument|cudaErrorInvalidConfiguration"
        r"|too many blocks in cooperative launch|invalid cluster size",
        "no_kernel_image": r"no kernel image is available for execution|invalid device function"
        r"|the provided PTX was compiled with an unsupported toolchain",
        "peer_access": r"peer access (?:is already enabled|has not been enabled|is not supported)"
        r"|peer mapping resources exhausted|cudaErrorPeerAccess\w|CUDA_ERROR_PEER_ACCESS",
        "stream_capture": r"operation not permitted when stream is capturing"
        r"|operation failed due to a previous error during capture|cudaErrorStreamCapture\w"
        r"|capturing stream has unjoined work|CUDA_ERROR_STREAM_CAPTURE",
        "invalid_device": rf"{_CUDA}invalid device ordinal|cudaErrorInvalidDevice\b",
        "invalid_argument": rf"{_CUDA}invalid argument|cudaErrorInvalidValue"
        r"|CUDA_ERROR_INVALID_VALUE",
        "gpu_hardware": r"uncorrectable ECC error encountered|uncorrectable NVLink error"
        r"|cudaErrorHardwareStackError",
        "one_gpu": r"ranks that share a GPU have no ",
        "no_gpu": r"no CUDA-capable device is detected|Found no NVIDIA driver on your system"
        r"|Torch not compiled with CUDA enabled|CUDA_HOME environment variable is not set",
    },
)

CRASHES = _signs(
    None,
    {
        "heap_corruption": r"^(?:double free or corruption|free\(\): |malloc\(\): |realloc\(\): "
        r"|munmap_chunk\(\): |corrupted (?:size|double-linked)|\*\*\* stack smashing detected)",
        "uncaught_exception": r"^  what\(\):  |^terminate called without an active exception",
        "signal_11": r"^Fatal Python error: Segmentation fault",
        "signal_7": r"^Fatal Python error: Bus error",
        "signal_8": r"^Fatal Python error: Floating[- ]point exception",
        "signal_4": r"^Fatal Python error: Illegal instruction",
        "signal_6": r"^Fatal Python error: Aborted",
    },
)

_TYPE = r"^(?:\[rank\d{1,4}\]: ?)?[\w.]{0,99}(?:Error|Exception)\b"
_SAYS = rf"{_TYPE}: [^\n]{{0,400}}?"

# What the message of an exception may say, where nothing above shows; the first that does counts.
MESSAGES = (
    *_signs(Verdict.BUILD_ERROR, {"compiler": rf"{_TYPE}: Error building extension "}),
    *_signs(Verdict.OOM, {"memory": rf"{_SAYS}[Oo]ut of memory"}),
    *_signs(
        None,
        {
            "interpreter": r"^InterpreterError: |not supported in interpreter mode"
            r"|\b0 active drivers\b",
            "multicast": rf"{_SAYS}\b[Mm]ulticast",
            "symmetric_memory": rf"{_SAYS}(?:[Ss]ymm(?:etric)?_?[Mm]em|[Ss]ymmetric memory)",
            "nccl": rf"{_SAYS}(?:NCCL|nccl[A-Z])|^[\w.]{{0,99}}DistBackendError\b",
            "vendor_library": rf"{_SAYS}(?:CUBLAS|CUDNN|CUSPARSE|CUSOLVER|CUFFT)_STATUS_",
            "cuda": rf"{_SAYS}CUDA (?:driver )?error: ",
            "dtype": rf"{_SAYS}(?:\bdtypes?\b|\bscalar type\b|can't be cast)",
            "shape": rf"{_SAYS}\b(?:[Ss]hapes?|[Ss]izes?|[Dd]imensions?)\b",
        },
    ),
)

# What a rank prints because another one failed before it.
AFTERMATH = _signs(
    None,
    {
        "peer_lost": r"Connection closed by peer|Connection reset by peer|Broken pipe"
        r"|NCCL communicator was aborted",
        "not_built": r"^ImportError: /\S{1,400}\.so: cannot open shared object file",
    },
)

ANYTHING = _signs(None, {"exception": rf"{_TYPE}(?:: |$)"})

ROOTS = BUILD + MEMORY + GPU

_JOINERS = (
    "The above exception was the direct cause of the following exception:",
    "During handling of the above exception, another exception occurred:",
)


def last_failure(text: str) -> str:
    """Return the last traceback of a log with those that it grew from; "" where there is none."""
    head = "Traceback (most recent call last):\n"
    at = text.rfind(head)
    while at > 0 and text[:at].rstrip().endswith(_JOINERS):
        above = text.rfind(head, 0, at)
        if above < 0:
            break
        at = above
    return text[at:] if at >= 0 else ""
