"""Runs the command line: `python -m evaluator run <problem> <kernel.py>` and `python -m evaluator
check`."""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from pathlib import Path

from evaluator.calibration.calibrate import calibrate
from evaluator.calibration.measurements import pretty as pretty_calibration
from evaluator.evaluate import evaluate
from evaluator.host.gpus import offered
from evaluator.messages.codec import encode
from evaluator.messages.faults import EvaluatorError
from evaluator.messages.job import Backend, Device, Dtype, Job, Placement, Profile, limits_of
from evaluator.messages.needs import uses_triton
from evaluator.messages.report import Progress, Report, Timing, Trial, Verdict
from evaluator.messages.source_files import read_kernel
from evaluator.sandbox import multicast_guard
from evaluator.sandbox.selfcheck import check_host
from evaluator.serve import serve

_OTHER_TIMES = {"call": "nothing queued ahead", "series": "back to back"}


def main(argv: list[str] | None = None) -> int:
    """Return the exit status: 0 for verdict ok, 1 for another verdict, 2 for a wrong call or our
    own fault."""
    arguments = _parser().parse_args(argv)
    if arguments.command == "check":
        return _check(arguments.json)
    try:
        if arguments.command == "serve":
            serve(sys.stdin, partial(print, flush=True))
            return 0
        if arguments.command == "calibrate":
            return _calibrate(arguments.world_size, arguments.out)
        job = _job(arguments)
        report = evaluate(job, _show_progress if arguments.pretty else None)
    except (EvaluatorError, ValueError, OSError) as error:
        print(f"evaluator: {error}", file=sys.stderr)
        return 2
    print(pretty(report) if arguments.pretty else json.dumps(encode(report), indent=1))
    return 0 if report.verdict is Verdict.OK else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m evaluator", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="judge a kernel against a problem")
    run.add_argument("problem", help="slug or number, such as allreduce or 1")
    run.add_argument(
        "kernel", type=Path, help="a Python file that defines solution(...), or a folder"
    )
    run.add_argument("--world-size", type=int, default=2, help="ranks (default 2)")
    run.add_argument("--size", default="tiny", help="named size of the problem (default tiny)")
    run.add_argument("--dtype", type=Dtype, choices=list(Dtype), default=Dtype.FLOAT32)
    run.add_argument("--profile", type=Profile, choices=list(Profile), default=Profile.HARDENED)
    run.add_argument("--device", type=Device, choices=list(Device), default=Device.CPU)
    run.add_argument(
        "--placement",
        type=Placement,
        choices=list(Placement),
        help="full: a GPU for each rank; shared: all on the first, checked and not timed "
        "(default: full, but shared where Triton's interpreter runs the kernel)",
    )
    run.add_argument("--backend", type=Backend, choices=list(Backend), default=Backend.PYTORCH)
    run.add_argument("--trials", type=int, default=6, help="correctness trials (default 6)")
    run.add_argument("--pretty", action="store_true", help="a summary instead of JSON")
    commands.add_parser("serve", help="judge a kernel a line, for another program")
    check = commands.add_parser("check", help="what isolation this host really reaches, and why")
    check.add_argument("--json", action="store_true")
    measure = commands.add_parser("calibrate", help="what GPUs reach, beside their datasheet")
    measure.add_argument("--world-size", type=int, help="how many GPUs (default all offered)")
    measure.add_argument("--out", type=Path, help="where to write the measurements as JSON")
    return parser


def _job(arguments: argparse.Namespace) -> Job:
    source = read_kernel(arguments.kernel)
    is_interpreted = arguments.device is Device.CPU and uses_triton(source)
    usual = Placement.SHARED if is_interpreted else Placement.FULL
    return Job(
        problem=arguments.problem,
        source=source,
        backend=arguments.backend,
        world_size=arguments.world_size,
        size=arguments.size,
        dtype=arguments.dtype,
        profile=arguments.profile,
        device=arguments.device,
        placement=arguments.placement or usual,
        trials=arguments.trials,
        limits=limits_of(arguments.device),
    )


def _show_progress(progress: Progress) -> bool:
    print(f"\r{progress.phase} {progress.done}/{progress.total}   ", end="", file=sys.stderr)
    return False


def _calibrate(world_size: int | None, out: Path | None) -> int:
    found = calibrate(world_size or len(offered()))
    print(pretty_calibration(found))
    if out is not None:
        out.write_text(json.dumps(encode(found), indent=1) + "\n")
    return 0


def _check(as_json: bool) -> int:
    found = check_host()
    if as_json:
        print(json.dumps(encode(found), indent=1))
    else:
        print(f"isolation: {found.isolation}")
        for probe in found.probes + found.gpu_probes:
            print(f"  {'ok  ' if probe.passed else 'FAIL'} {probe.name}: {probe.detail}")
        for reason in found.why_not_higher:
            print(f"  not higher: {reason}")
        if found.gpu_probes and not multicast_guard.is_available():
            print(f"  note: {multicast_guard.UNGUARDED}")
    return 0


def pretty(report: Report) -> str:
    """Return a report as a few lines for a terminal."""
    lines = [f"\n{report.verdict.upper()}  {report.problem}: {report.message}"]
    if report.evidence:
        lines.append(f"  evidence: {report.evidence}")
    lines += [_trial_line(trial) for trial in report.trials]
    if report.timing is not None:
        lines += _timing_lines(report.timing)
    if report.placement is Placement.SHARED:
        lines.append("  placement: shared (all ranks on one device; checked, not timed)")
    if report.flags:
        lines.append(f"  flags: {', '.join(report.flags)}")
    spent = ", ".join(f"{phase} {seconds:.2f} s" for phase, seconds in report.phase_s.items())
    lines += [f"  isolation: {report.isolation}", f"  time: {spent}"]
    for log in report.logs:
        who = "sandbox" if log.rank < 0 else f"rank {log.rank}"
        lines += [f"  --- log of {who}", *(f"  | {line}" for line in log.text.splitlines()[-20:])]
    return "\n".join(lines)


def _timing_lines(timing: Timing) -> list[str]:
    """Return the score with its interval, then the times that do not rank."""
    lines = [
        f"  kernel {timing.kernel_us:.1f} us, reference {timing.baseline_us:.1f} us:"
        f" {timing.speedup:.2f}x ({timing.speedup_low:.2f} to {timing.speedup_high:.2f}),"
        f" medians of {timing.timed_calls} and {len(timing.baseline_bursts_us)} calls"
    ]
    if timing.resolution_us is not None:
        lines.append(
            f"  {timing.empty_us:.1f} us of an empty call taken off,"
            f" resolution {timing.resolution_us:.1f} us"
        )
    for name in ("call", "series"):
        own, usual = (
            getattr(side, f"{name}_us", None) for side in (timing.kernel, timing.baseline)
        )
        if own and usual:
            lines.append(f"  {_OTHER_TIMES[name]}: kernel {own:.1f} us, reference {usual:.1f} us")
    return lines


def _trial_line(trial: Trial) -> str:
    errors = [check.max_error for check in trial.checks if check.max_error is not None]
    margin = f"largest error {max(errors):.2g} of the tolerance" if errors else "no error measured"
    result = "passed" if trial.passed else "FAILED"
    return f"  trial {trial.trial} ({trial.m} x {trial.n}, {trial.note}): {result}, {margin}"


if __name__ == "__main__":
    sys.exit(main())
