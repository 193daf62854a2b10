"""Where ranks stood: dumps of stacks and last collectives, read from their logs."""

from __future__ import annotations

import pytest

from evaluator.diagnosis.diagnose import Diagnosis, refine, sentence
from evaluator.diagnosis.stacks import COMPILATION, MISMATCHED, Entered, Frame, stacks, standstill
from evaluator.messages.faults import Fault
from evaluator.messages.report import Phase, RankLog, Verdict

C10D = "/usr/lib/python3/site-packages/torch/distributed/distributed_c10d.py"
OWN = "/tmp/rank0/submission.py"
SERVING = ("/srv/evaluator/runner.py", 59, "run_rank")


def _dump(*frames: tuple[str, int, str], head: str = "Current thread") -> str:
    lines = [f'  File "{file}", line {line} in {name}' for file, line, name in frames]
    return "\n".join([f"{head} 0x00007f00 (most recent call first):", *lines, ""])


def _in(call: str, entered: str) -> str:
    """A rank that waits in a collective; `entered` is the last that it says it has entered."""
    stack = _dump((C10D, 3252, call), (OWN, 7, "solution"), SERVING)
    return f"{stack}last collective: {entered}\n"


def test_a_staged_collective_is_told_by_the_name_that_the_kernel_called() -> None:
    staged = ("/srv/problems/running/staged_collectives.py", 134, "all_gather")
    moving = ("/srv/problems/running/staging.py", 70, "exchange")
    on_gpu = ("/srv/problems/running/staging.py", 115, "_on_host")
    gloo = _dump((C10D, 3252, "all_to_all_single"), moving, staged, (OWN, 7, "solution"), SERVING)
    waiting = _dump(on_gpu, staged, (OWN, 7, "solution"), SERVING)
    for text in (gloo, waiting):
        (found,) = stacks([RankLog(rank=0, text=text)])
        assert found.waits_in == "all_gather"


def _logs(*texts: str) -> tuple[RankLog, ...]:
    return tuple(RankLog(rank=rank, text=text) for rank, text in enumerate(texts))


def test_a_rank_is_where_the_thread_that_serves_the_judge_is() -> None:
    text = (
        "a line of the kernel's own\n"
        + _dump((OWN, 3, "solution"), SERVING)
        + "Timeout (0:00:02)!\n"
        + _dump((OWN, 40, "poll"), head="Thread")
        + "\n"
        + _dump((OWN, 12, "solution"), SERVING, head="Thread")
        + "last collective: broadcast seq=3 group=0 state=completed\n"
        + "last collective: all_reduce seq=4 group=0 state=started\n"
        + "last collective: send 0->1 seq=4 group=7 state=completed\n"
    )
    (found,) = stacks([RankLog(rank=-1, text=text), RankLog(rank=2, text=text)])
    assert found.rank == 2
    assert found.frames[0] == Frame(file=OWN, line=12, function="solution")
    assert found.pending == (Entered(call="all_reduce", seq=4, group="0", state="started"),)
    assert [entered.call for entered in found.entered] == ["all_reduce", "send"]
    assert len(found.frames) == 2


STANDSTILLS: list[tuple[tuple[RankLog, ...], str | None, str]] = [
    (
        _logs(
            _in("all_reduce", "all_reduce seq=5 group=0"), _in("barrier", "barrier seq=5 group=0")
        ),
        MISMATCHED,
        "group 0 do not match: rank 0 all_reduce (seq 5), rank 1 barrier (seq 5)",
    ),
    (
        _logs(
            _in("all_reduce", "all_reduce seq=5 group=0"),
            _in("all_reduce", "all_reduce seq=4 group=0"),
        ),
        MISMATCHED,
        "rank 0 all_reduce (seq 5), rank 1 all_reduce (seq 4)",
    ),
    (
        _logs(
            _in("all_reduce", "all_reduce seq=5 group=0"),
            f"{_dump((OWN, 12, 'own'), SERVING)}last collective: all_reduce seq=4 group=0\n",
        ),
        "deadlock",
        "rank 1 waits in submission.py line 12 (own), after entering all_reduce seq=4 group=0",
    ),
    (
        _logs(
            _in("all_reduce", "all_reduce seq=2 group=a"), _in("barrier", "barrier seq=2 group=b")
        ),
        "deadlock",
        "rank 0 waits in all_reduce, submission.py line 7 (solution)",
    ),
    (
        _logs(_in("send", "send seq=1 group=0"), _in("recv", "recv seq=1 group=0")),
        "deadlock",
        "rank 1 waits in recv",
    ),
    (
        _logs(*(f"last collective: {name} seq=9 group=0\n" for name in ("reduce", "gather"))),
        MISMATCHED,
        "rank 0 reduce (seq 9), rank 1 gather (seq 9)",
    ),
    (
        _logs(
            *(
                f"{_dump(('/usr/lib/torch/cuda/__init__.py', 1095, 'synchronize'), SERVING)}"
                f"last collective: {name} seq=9 group=0 state=started\n"
                "last collective: all_reduce seq=2 group=1 state=completed\n"
                for name in ("all_reduce", "_all_gather_base")
            )
        ),
        MISMATCHED,
        "rank 1 _all_gather_base (seq 9); rank 0 launched everything, and the GPU never finished"
        " it, after entering all_reduce seq=9 group=0",
    ),
    (
        _logs(
            *(
                f"{_dump(('/usr/lib/torch/cuda/__init__.py', 1095, 'synchronize'), SERVING)}"
                f"last collective: all_reduce seq={seq} group=0 state=scheduled\n"
                for seq in (9, 12)
            )
        ),
        None,
        "rank 1 launched everything, and the GPU never finished it,"
        " after entering all_reduce seq=12",
    ),
    (
        _logs(_dump(("/usr/lib/torch/cuda/__init__.py", 1095, "synchronize"), SERVING)),
        None,
        "rank 0 launched everything, and the GPU never finished it",
    ),
]


@pytest.mark.parametrize(("logs", "cause", "told"), STANDSTILLS)
def test_a_standstill_is_told(logs: tuple[RankLog, ...], cause: str | None, told: str) -> None:
    found = standstill(stacks(logs))
    assert found is not None
    assert found.cause == cause
    assert told in found.sentence


def test_a_standstill_without_stacks_keeps_what_is_known() -> None:
    known = Diagnosis(verdict=Verdict.TIMEOUT, cause="build", evidence=None, ranks=(1,))
    logs = _logs("compiling…")
    assert refine(Verdict.TIMEOUT, "build", None, logs, Phase.BUILD, ranks=(1,)) == known
    assert standstill(stacks(logs)) is None


def test_the_sentence_is_short_whatever_ranks_say() -> None:
    logs = tuple(
        RankLog(rank=rank, text=_dump((OWN, rank, "f" * 4000), SERVING)) for rank in range(64)
    )
    found = standstill(stacks(logs))
    assert found is not None
    assert len(found.sentence) == 500


COMPILER = "/usr/lib/torch/_inductor/scheduler.py"
RUNTIME = ("/usr/lib/torch/_dynamo/eval_frame.py", 9, "_fn")


@pytest.mark.parametrize(
    ("compiler", "compiles"),
    [
        (COMPILER, True),
        ("/usr/lib/torch/_dynamo/convert_frame.py", True),
        ("/usr/lib/triton/compiler/compiler.py", True),
        ("/usr/lib/torch/utils/cpp_extension.py", True),
        ("/usr/lib/torch/_inductor/output_code.py", False),
        ("/usr/lib/torch/nn/functional.py", False),
    ],
)
def test_a_rank_inside_a_compiler_is_no_deadlock(compiler: str, compiles: bool) -> None:
    slow = _dump((compiler, 12, "run"), RUNTIME, (OWN, 7, "solution"), SERVING)
    logs = _logs(slow, _in("all_reduce", "all_reduce seq=5 group=0"))
    fault = Fault(Verdict.TIMEOUT, "deadlock", "no answer from rank 0 within 120 s of verify")
    found = refine(fault.verdict, fault.cause, None, logs, Phase.VERIFY)
    assert found.cause == (COMPILATION if compiles else "deadlock")
    told = sentence(fault, found, None)
    assert told.startswith("compilation took longer than") == compiles
    assert ("rank 0 waits for a compiler, submission.py line 7 (solution)" in told) == compiles


def test_a_collective_of_compiled_code_is_one() -> None:
    waiting = _dump((C10D, 3, "all_reduce"), (COMPILER, 1, "f"), (OWN, 7, "solution"), SERVING)
    (found,) = stacks(_logs(waiting))
    assert (found.waits_in, found.compiles) == ("all_reduce", False)
