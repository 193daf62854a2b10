"""The house kernels, judged: `house_kernels.py OUT.jsonl [--world-size N] [--placement shared]`.

Timed, with a GPU for each rank, one at a time, on as many ranks as the host has GPUs; or checked
with all ranks on one GPU (`--placement shared`) or on processors (`--device cpu`, by Triton's
interpreter), several at once. As in judge_kernels.py, OUT.jsonl gets a line for each as it ends,
what it holds is not judged again, and none is started after `--budget-s`: many calls make one run.
With `--reports FILE.jsonl.gz` each report is added to what `import_reports` reads.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from judge_kernels import Keep, judge
from judged_lines import Turn
from reports_file import HOUSE, append

from evaluator.host.gpus import offered
from evaluator.messages.job import Device, Dtype, Job, Placement, limits_of
from evaluator.messages.report import Report
from tests.evaluator.house_files import all_house_kernels

RANKS = (8, 4, 2)


def turns(given: argparse.Namespace) -> list[Turn]:
    """Return each kernel in each dtype."""
    found = []
    for kernel in all_house_kernels():
        for dtype in map(Dtype, given.dtypes.split(",")):
            job = Job(
                problem=kernel.slug,
                source=kernel.source,
                backend=kernel.backend,
                placement=given.placement,
                world_size=given.world_size,
                device=given.device,
                dtype=dtype,
                size=given.size,
                limits=limits_of(given.device),
            )
            path = f"{kernel.path.parent.name}/{kernel.path.name}"
            found.append(Turn(name=f"{kernel.path.stem} {dtype.value}", job=job, path=path))
    return [turn for turn in found if re.search(given.only, turn.name)]


def keep_for_site(path: Path) -> Keep:
    """Return what adds a line for `import_reports` to that file."""

    def keep(turn: Turn, report: Report, beside: int) -> None:
        if not beside or report.verdict == "ok":
            append(path, HOUSE, 1, turn.job, report)

    return keep


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default="", help="a regular expression that names must match")
    parser.add_argument("--world-size", type=int, help="ranks; default: 8, 4 or 2, as GPUs are")
    parser.add_argument("--placement", type=Placement, default=Placement.FULL)
    parser.add_argument("--device", type=Device, default=Device.CUDA)
    parser.add_argument("--size", help="default: standard, on processors tiny")
    parser.add_argument("--dtypes", default="bfloat16", help="separated by commas")
    parser.add_argument("--parallel", type=int, help="judges at a time; default 1, 6 on one GPU")
    parser.add_argument("--budget-s", type=float, default=500.0, help="start none after this long")
    parser.add_argument("--reports", type=Path, help="also add lines for import_reports: .jsonl.gz")
    given = parser.parse_args()
    on_gpus = given.device is Device.CUDA
    if not on_gpus:
        given.placement = Placement.SHARED
    is_shared_gpu = on_gpus and given.placement is Placement.SHARED
    gpus = len(offered()) if on_gpus and not is_shared_gpu else 2
    given.world_size = given.world_size or next((n for n in RANKS if n <= gpus), 2)
    given.size = given.size or ("standard" if on_gpus else "tiny")
    given.parallel = given.parallel or (6 if is_shared_gpu else 1)
    return given


def main() -> int:
    """Exit status 0: all are right."""
    given = arguments()
    wanted = turns(given)
    own = judge(given, wanted, keep_for_site(given.reports) if given.reports else None)
    right = sum(line.get("verdict") == "ok" for line in own)
    print(f"{right} of {len(wanted)} right")
    return 0 if right == len(wanted) else 1


if __name__ == "__main__":
    sys.exit(main())
