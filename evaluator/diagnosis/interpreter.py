"""Says which failures of a kernel on a processor may be those of Triton's interpreter.

It runs the programs of a rank one after the other, so one that waits for another of its own rank
waits for ever. It is slow, has no inline assembly and no autotuner, stores bfloat16 as integers and
rounds to it towards zero. What may be due to that cannot be checked there, and is not the kernel's
fault.
"""

from __future__ import annotations

from evaluator.messages.faults import Fault
from evaluator.messages.job import Backend, Device, Dtype, Job
from evaluator.messages.needs import uses_triton
from evaluator.messages.report import Verdict

CAUSE = "interpreter"
# Words added as integers are any word, the one that says that nothing was written among them.
_OF_VALUES = (Verdict.OUTPUT_MISMATCH, Verdict.NONFINITE_OUTPUT, Verdict.LATE_OUTPUT)
_WHY = "Triton's interpreter cannot check this kernel"


def is_interpreted(job: Job) -> bool:
    """Return whether Triton's interpreter runs the job's kernel."""
    return job.device is Device.CPU and uses_triton(job.source)


def checkable(fault: Fault, job: Job) -> Fault:
    """Return the fault, or in its place that it cannot be told here whether there is one.

    What is handed in as another language keeps its fault: a site has such kernels judged on
    processors for its boards, and none may choose not to be judged.
    """
    is_doubtful = is_interpreted(job) and job.backend is Backend.TRITON
    reason = _doubt(fault, job.dtype) if is_doubtful else None
    if reason is None:
        return fault
    message = f"{_WHY}: {reason} ({fault.message})"
    return Fault(Verdict.HOST_UNSUPPORTED, CAUSE, message, evidence=fault.evidence)


def _doubt(fault: Fault, dtype: Dtype) -> str | None:
    """Return why a fault may be the interpreter's; None where it is the kernel's."""
    if fault.verdict is Verdict.TIMEOUT:
        return "it is slow, and runs the programs of a rank one after the other"
    if fault.cause == CAUSE:
        return "it stopped"
    if fault.verdict in _OF_VALUES and dtype is Dtype.BFLOAT16:
        return "it has no arithmetic of bfloat16; float32 and float16 can be checked"
    return None
