"""Finds out what kernels of a run will be judged with, so that models are told."""

from __future__ import annotations

from collections.abc import Mapping

from evaluator.generate.options import SITE
from evaluator.generate.plan import Plan
from evaluator.generate.site_judge import versions_told
from evaluator.host.gpus import offered
from evaluator.messages.job import Device
from evaluator.sandbox.hardware import host_versions
from problems.environment import of_release
from problems.topology import class_called


def versions_of(plan: Plan) -> Mapping[str, str]:
    """Return the versions of the hosts that judge: this host's, or those that the site tells of its
    class of hardware; else those that the release was judged with."""
    if plan.judge == SITE and plan.site:
        return versions_told(plan.site, plan.hardware) or _of_release(plan)
    own_gpus = offered() if plan.device is Device.CUDA else ()
    if plan.judge == "local" and (own_gpus or plan.device is Device.CPU):
        return host_versions(own_gpus)
    return _of_release(plan)


def _of_release(plan: Plan) -> Mapping[str, str]:
    return of_release(plan.device, class_called(plan.hardware).title)
