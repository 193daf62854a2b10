"""Judges one kernel against one problem: Job in, Report out, `evaluate` between them.

Imported by the site, which may know only what is named here and the messages.
"""

from evaluator.messages.faults import EvaluatorError
from evaluator.messages.job import Backend, Device, Dtype, Job, Limits, Profile, limits_of
from evaluator.messages.report import (
    Environment,
    Isolation,
    Phase,
    Progress,
    Report,
    Timing,
    Trial,
    Verdict,
)

__version__ = "0.1.0"

__all__ = [
    "Backend",
    "Device",
    "Dtype",
    "Environment",
    "EvaluatorError",
    "Isolation",
    "Job",
    "Limits",
    "Phase",
    "Profile",
    "Progress",
    "Report",
    "Timing",
    "Trial",
    "Verdict",
    "__version__",
    "limits_of",
]
