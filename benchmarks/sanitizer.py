"""Run the house kernels under NVIDIA's compute-sanitizer: `sanitizer.py OUT.jsonl`.

Two ranks share one GPU, each a process under memcheck or racecheck (`--tools`), without judge and
sandbox: each kernel gets calls with hidden inputs, back to back, then a synchronisation; nobody
looks at the answers. A pair of ranks takes `--per-pair` kernels in turn, as its start is slow;
`--parallel` pairs are at work. An error is of the kernel whose file it names, else of the one that
ran when it came: for sure only with `--per-pair 1`. OUT.jsonl gets lines as a pair ends, one for
each kernel and tool; what it holds is not run again; no pair is started after `--budget-s`.
`status` is `hang` where no call ended for `--limit-s`, `crash` where a rank raised or died, as it
does after memcheck's first error. With no GPU, by the interpreter: `--device cpu --tools none`.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from argparse import SUPPRESS, ArgumentParser, Namespace
from bisect import bisect
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from house_calls import IMPORTED, Place, calls
from judged_lines import read_lines
from provenance import provenance

from evaluator.host.host import MULTICAST_OFF, ON_ONE_GPU
from evaluator.messages.job import source_digest
from tests.evaluator.house_files import HouseKernel, all_house_kernels, read

Process = subprocess.Popen[bytes]
Lines = list[dict[str, Any]]
Note = Callable[[str], None]
Group = tuple[str, list[Path]]  # a tool, and kernels for it
Event = tuple[str, int, float]  # its name, the size of the rank's log then, and the time

RANKS, CALLS = 2, 3
BEGUN, DONE = "begun", "done"
QUIET_S, END_S, GRACE_S = 0.3, 10.0, 20.0
CACHE = str(Path(tempfile.gettempdir(), "pkb-sanitizer-triton"))  # of all ranks
FIRST_PORT, PORTS = 49152, 10  # as many as a sanitizer may try
SANITIZER = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
OPTIONS = (
    *("--target-processes=application-only", "--launch-timeout=60", "--require-cuda-init=no"),
    *("--show-backtrace=device", "--print-limit=0", "--check-exit-code=no"),
    "--report-api-errors=no",  # torch tries what may fail
)
# A line of a log that is not indented, and those behind it that are.
_RECORD = re.compile(
    r"(?m)^========= (?!COMPUTE-SANITIZER|\w+ SUMMARY|Target application|Tracking kernels"
    r"|Error: process didn't|Error: couldn't find exit)\S.*(?:\n=========  +\S.*)*"
)


def be_rank(given: Namespace, number: str, place: str, *paths: str) -> int:
    """Run kernels, and write down when each has begun, has answered a call, and is done."""
    import torch

    from evaluator.rank.symmetric_memory import put_in_place
    from problems.mesh import join_world

    rank, folder = int(number), Path(place)
    signal.alarm(int(given.budget_s + GRACE_S + END_S))  # the driver may be gone

    def note(event: str) -> None:
        faulthandler.dump_traceback_later(0.9 * given.limit_s)
        size = len(text_of(folder / f"log{rank}"))
        with (folder / f"events{rank}").open("a") as events:
            events.write(f"{json.dumps([event, size, time.monotonic()])}\n")

    if given.device == "cpu":
        put_in_place()
    device = join_world(given.device, str(folder / "store"), rank, RANKS, is_shared=True)
    here = Place(rank=rank, ranks=RANKS, device=device, size=given.size)
    for path in paths:
        torch.distributed.barrier()
        note(BEGUN)
        call_kernel(read(Path(path)), here, note)
        if device.type == "cuda":
            torch.cuda.synchronize()
        time.sleep(QUIET_S)  # the sanitizer is another process
        note(DONE)
    return 0


def call_kernel(kernel: HouseKernel, place: Place, note: Note) -> None:
    """Call a kernel as the judge does, with the last inputs of a hardened run."""
    answers = []
    for answer in calls(kernel, place, slice(-CALLS, None)):
        answers.append(answer)  # kept: no memory twice
        note("called")


def serve(given: Namespace, ends: float, queue: deque[Group], slot: int) -> None:
    """Run groups of kernels, a pair of ranks each, as long as there are any and the time lasts."""
    while queue and time.monotonic() < ends:
        tool, paths = queue.popleft()
        with tempfile.TemporaryDirectory(prefix="sanitizer-") as name:
            folder = Path(name)
            ranks = [start(given, tool, paths, folder, RANKS * slot + r) for r in range(RANKS)]
            status = watched(ranks, folder, len(paths), given.limit_s, ends + GRACE_S)
            stop(ranks, END_S if status == "ok" else 1.0)
            lines = lines_of(given, tool, paths, folder, status)
        with given.out.open("a") as out:
            out.write("".join(f"{json.dumps(line)}\n" for line in lines))
        for line in lines:
            why = [*line["first"], *line["printed"].splitlines()[-1:], ""]
            told = f"{line['seconds']:6.1f} {tool:<9} {line['kernel']:<60}"
            print(f"{told} {found(line)} {why[0][:200]}", flush=True)
        if not lines:
            return
        if rest := paths[len(lines) :]:
            queue.appendleft((tool, rest))


def start(given: Namespace, tool: str, paths: list[Path], folder: Path, number: int) -> Process:
    """Start a rank, under the tool unless that is `none`; no other at work has its number."""
    rank = number % RANKS
    own = (str(rank), str(folder), *map(str, paths))
    program = [sys.executable, __file__, *sys.argv[1:], "--as-rank", *own]
    if tool != "none":
        to = (f"--log-file={folder / f'log{rank}'}", f"--port={FIRST_PORT + PORTS * number}")
        program = [SANITIZER, f"--tool={tool}", *to, *OPTIONS, *program]
    settings = {**MULTICAST_OFF, **ON_ONE_GPU, "OMP_NUM_THREADS": "1", "PYTHONPATH": IMPORTED}
    settings |= {"TMPDIR": str(folder), "TRITON_CACHE_DIR": CACHE, "PYTHONDONTWRITEBYTECODE": "1"}
    if given.device == "cpu":
        settings["TRITON_INTERPRET"] = "1"
    elif tool == "memcheck":
        settings["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"  # or it sees torch's blocks, not tensors
    settings = os.environ | settings
    with (folder / f"output{rank}").open("wb") as out:
        return Process(program, env=settings, stdout=out, stderr=out, start_new_session=True)


def watched(ranks: list[Process], folder: Path, count: int, limit_s: float, latest: float) -> str:
    """Return how a pair has ended: `ok`, `crash`, `hang`, or `late` where it lasted too long."""
    before, heard = list[list[Event]](), time.monotonic()
    while True:
        time.sleep(0.1)
        is_over = [process.poll() is not None for process in ranks]
        now, events = time.monotonic(), [events_of(folder, rank) for rank in range(RANKS)]
        is_done = [sum(event[0] == DONE for event in own) == count for own in events]
        if all(is_done):
            return "ok"
        if any(over and not done for over, done in zip(is_over, is_done, strict=True)):
            return "crash"
        if events != before:
            before, heard = events, now
        if now > min(latest, heard + limit_s):
            return "late" if now > latest else "hang"


def stop(ranks: list[Process], patience_s: float) -> None:
    """Let ranks end by themselves for a while, then end them with what they have started."""
    ends = time.monotonic() + patience_s
    for process in ranks:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, ends - time.monotonic()))
    for process in ranks:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def events_of(folder: Path, rank: int) -> list[Event]:
    """Return what a rank has written down."""
    whole = text_of(folder / f"events{rank}").rpartition("\n")[0]
    return [(name, size, at) for name, size, at in map(json.loads, whole.splitlines())]


def lines_of(given: Namespace, tool: str, paths: list[Path], folder: Path, status: str) -> Lines:
    """Return a line for each kernel that was done, and for the one that ended a pair too early."""
    events = [events_of(folder, rank) for rank in range(RANKS)]
    done = min(sum(name == DONE for name, _, _ in own) for own in events)
    begins = [at for name, _, at in max(events, key=len) if name == BEGUN]
    ends = [at for name, _, at in max(events, key=len) if name == DONE]
    shown = paths[: len(begins) if status in ("hang", "crash") else done]
    printed = "".join(text_of(folder / f"output{rank}")[-3000:] for rank in range(RANKS))
    if not begins:
        print(f"{tool}: {status}, and none begun: {printed}{text_of(folder / 'log0')}", flush=True)
    errors = errors_of(folder, paths, events)
    return [
        {
            "key": key_of(given, tool, path),
            "tool": tool,
            "kernel": path.stem,
            "status": "ok" if index < done else status,
            "errors": len(errors[index]),
            "first": [text[:500] for text in dict.fromkeys(errors[index])][:3],
            "seconds": round((*ends, time.monotonic())[index] - begins[index], 2),
            "pair": [other.stem for other in shown],
            "printed": printed if index >= done else "",
        }
        for index, path in enumerate(shown)
    ]


def errors_of(folder: Path, paths: list[Path], events: list[list[Event]]) -> list[list[str]]:
    """Return what the logs say of each kernel, an error in a line."""
    errors: list[list[str]] = [[] for _ in paths]
    for rank, own in enumerate(events):
        sizes = [size for name, size, _ in own if name == DONE]
        last = max(0, sum(name == BEGUN for name, _, _ in own) - 1)
        for match in _RECORD.finditer(text_of(folder / f"log{rank}")):
            named = [index for index, path in enumerate(paths) if path.name in match[0]]
            index = named[0] if named else min(bisect(sizes, match.start()), last)
            errors[index].append(" ".join(match[0].replace("=========", "").split()))
    return errors


def text_of(path: Path) -> str:
    """Return what a file holds, a character a byte; nothing where there is none."""
    return path.read_text("latin-1") if path.exists() else ""


def key_of(given: Namespace, tool: str, path: Path) -> str:
    """Return what tells a run of a kernel from all others."""
    digest = source_digest(path.read_text())[:16]
    return f"{tool}/{path.stem}/{digest}/{given.device}/{given.size}"


def found(line: dict[str, Any]) -> str:
    """Return one word for what a line says."""
    return "errors" if line["errors"] else {"ok": "clean"}.get(line["status"], line["status"])


def groups(given: Namespace, paths: list[Path]) -> Iterator[Group]:
    """Return what pairs are to run, one tool after the other: what the file does not hold."""
    known = {line["key"] for line in read_lines(given.out)}
    for tool in given.tools.split(","):
        left = [path for path in paths if key_of(given, tool, path) not in known]
        count = -(-len(left) // given.per_pair)
        yield from ((tool, left[first::count]) for first in range(count))


def arguments() -> Namespace:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default="", help="a regular expression for names of files")
    parser.add_argument("--tools", default="memcheck,racecheck", help="separated by commas")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--size", default="tiny")
    parser.add_argument("--parallel", type=int, default=8, help="pairs at a time")
    parser.add_argument("--per-pair", type=int, default=6, help="kernels in turn")
    parser.add_argument("--limit-s", type=float, default=60.0, help="longest time for one step")
    parser.add_argument("--budget-s", type=float, default=500.0, help="start none after this long")
    parser.add_argument("--as-rank", nargs="+", help=SUPPRESS)
    return parser.parse_args()


def main() -> int:
    """Exit status 0: every kernel that was asked for is clean."""
    given = arguments()
    if given.as_rank:
        return be_rank(given, *given.as_rank)
    paths = [own.path for own in all_house_kernels() if re.search(given.only, own.path.stem)]
    wanted = {key_of(given, tool, own) for tool in given.tools.split(",") for own in paths}
    print(json.dumps(provenance()), flush=True)
    ends, queue = time.monotonic() + given.budget_s, deque(groups(given, paths))
    with ThreadPoolExecutor(given.parallel) as pool:
        list(pool.map(lambda slot: serve(given, ends, queue, slot), range(given.parallel)))
    lines = {line["key"]: line for line in read_lines(given.out) if line["key"] in wanted}
    counts = Counter(f"{line['tool']} {found(line)}" for line in lines.values())
    told = [f"{count:4} {name}" for name, count in sorted(counts.items())]
    print(*told, f"{len(lines)} of {len(wanted)} run", sep="\n")
    return 0 if len(wanted) == sum(found(line) == "clean" for line in lines.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
