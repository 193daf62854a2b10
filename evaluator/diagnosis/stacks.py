"""Reads where ranks stood when they were killed: faulthandler's dumps in their logs, made one
sentence.

A log also says which collective its rank entered last in each process group, with its number in the
group: `last collective: all_reduce seq=5 group=0 state=started`. All of it is attacker-controlled.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from evaluator.messages.hangs import ALL_LAUNCHED
from evaluator.messages.report import RankLog
from evaluator.messages.text import plain_text

MAX_FRAMES = 100
MAX_SENTENCE = 500
MAX_GROUPS = 100
MISMATCHED = "deadlock_mismatched_collectives"
COMPILATION = "compilation"
ANSWERED = "had answered"

_BLOCK = re.compile(
    r"^(?:Thread|Current thread) 0x[0-9a-f]+[^\n]{0,80}\(most recent call first\):\n"
    r'(?P<frames>(?:  File "[^\n]*(?:\n|\Z))+)',
    re.MULTILINE,
)
_FRAME = re.compile(r'^  File "([^"\n]{0,600})", line (\d{1,9}|\?\?\?) in ([^\n]{1,200})', re.M)
_ENTERED = re.compile(
    r"^last collective: (\w{1,80})(?: [^\n=]{0,80})? seq=(\d{1,12}) group=(\S{1,80})"
    r"(?: state=(\w{1,20}))?$",
    re.MULTILINE,
)

# Calls in which every rank of a group takes part; the others of torch.distributed go by pairs.
COLLECTIVES = frozenset(
    {
        *("all_reduce", "all_reduce_coalesced", "reduce", "broadcast", "barrier"),
        *("monitored_barrier", "all_gather", "all_gather_into_tensor", "all_gather_coalesced"),
        *("gather", "scatter", "reduce_scatter", "reduce_scatter_tensor", "all_to_all"),
        *("all_to_all_single", "all_gather_object", "broadcast_object_list", "gather_object"),
        *("scatter_object_list", "new_group", "init_process_group", "rendezvous"),
    }
)
_STAGED = (
    "/problems/running/staged_collectives.py"  # in the place of torch's where ranks share a GPU
)
# Where compilers run; the modules left out are also on the stack of what has been compiled.
_COMPILERS = re.compile(
    r"/torch/_(?:dynamo|inductor)/(?!eval_frame|external_utils|utils|output_code|runtime/|cudagraph)"
    r"|/triton/compiler/|/torch/utils/cpp_extension\.py"
)
_OWN = re.compile(r"/submission\.py$|/kernel/submission/")
PAIRWISE = frozenset({"send", "recv", "isend", "irecv", "batch_isend_irecv", "wait", "wait_tensor"})


@dataclass(frozen=True, kw_only=True)
class Frame:
    """Holds one frame of a stack."""

    file: str
    line: int | None
    function: str

    def __str__(self) -> str:
        name = self.file.rpartition("/")[2] or self.file
        return f"{name} line {self.line or '?'} ({self.function})"


@dataclass(frozen=True, kw_only=True)
class Entered:
    """Holds a collective that a rank has entered; only NCCL's recorder says when one is
    `completed`."""

    call: str
    seq: int
    group: str
    state: str | None = None

    def __str__(self) -> str:
        return f"{self.call} seq={self.seq} group={self.group}"


@dataclass(frozen=True, kw_only=True)
class RankStack:
    """Holds a rank when it was killed; the innermost frame is first, `entered` holds one a
    group."""

    rank: int
    frames: tuple[Frame, ...]
    entered: tuple[Entered, ...] = ()

    @property
    def pending(self) -> tuple[Entered, ...]:
        """Return what a rank has entered and, as far as its log says, not completed."""
        return tuple(entered for entered in self.entered if entered.state != "completed")

    @property
    def waits_in(self) -> str | None:
        """Return the call of torch.distributed that a rank is inside of, if any."""
        staged = [frame for frame in self.frames if frame.file.endswith(_STAGED)]
        inner = staged or [frame for frame in self.frames if "/torch/distributed/" in frame.file]
        known = COLLECTIVES | PAIRWISE
        return next((frame.function for frame in inner if frame.function in known), None)

    @property
    def compiles(self) -> bool:
        """Return True if it is inside a compiler, and waits for no other rank there."""
        return not self.waits_in and any(_COMPILERS.search(frame.file) for frame in self.frames)

    @property
    def is_idle(self) -> bool:
        """Return whether it had done what it was asked for and waited for the judge."""
        if not self.frames:
            return False
        inner = self.frames[0]
        return inner.function == "wait_go" and "/evaluator/" in inner.file

    @property
    def own_frame(self) -> Frame | None:
        """Return the innermost frame of the submission's own source, if any."""
        return next((frame for frame in self.frames if _OWN.search(frame.file)), None)


def stacks(logs: Sequence[RankLog]) -> tuple[RankStack, ...]:
    """Return what each rank's log holds of its end; ranks whose log holds nothing of it are left
    out."""
    found = (
        RankStack(rank=log.rank, frames=_frames(log.text), entered=_entered(log.text))
        for log in logs
        if log.rank >= 0
    )
    return tuple(stack for stack in found if stack.frames or stack.entered)


def _entered(text: str) -> tuple[Entered, ...]:
    last = {
        group: Entered(call=call, seq=int(seq), group=plain_text(group), state=state or None)
        for call, seq, group, state in _ENTERED.findall(text)
    }
    return tuple(last.values())[-MAX_GROUPS:]


def _frames(text: str) -> tuple[Frame, ...]:
    """Read, of the threads dumped last, the one that serves the judge; it began first, so is listed
    last."""
    blocks = [block["frames"] for block in _BLOCK.finditer(text)]
    serving = [block for block in blocks if " in run_rank" in block] or blocks
    return tuple(
        Frame(
            file=plain_text(file),
            line=int(line) if line.isdigit() else None,
            function=plain_text(function, 80),
        )
        for file, line, function in _FRAME.findall(serving[-1] if serving else "")[:MAX_FRAMES]
    )


@dataclass(frozen=True, kw_only=True)
class Standstill:
    """Says why no rank went on. `cause` None: none is seen to wait for another."""

    cause: str | None
    sentence: str


def standstill(found: Sequence[RankStack]) -> Standstill | None:
    """Return where the ranks of a run that stood still wait; None where nothing is known of it."""
    if not found:
        return None
    places: dict[str, list[int]] = defaultdict(list)
    for stack in found:
        places[_place(stack)].append(stack.rank)
    odd_ones_first = sorted(places.items(), key=lambda place: (len(place[1]), place[1]))
    told = [_told(ranks, place) for place, ranks in odd_ones_first]
    clash = _clash(found)
    is_met = clash or any(stack.waits_in for stack in found)
    compiles = not clash and any(stack.compiles for stack in found)
    return Standstill(
        cause=MISMATCHED if clash else COMPILATION if compiles else "deadlock" if is_met else None,
        sentence=plain_text("; ".join([clash, *told] if clash else told), MAX_SENTENCE),
    )


def _place(stack: RankStack) -> str:
    own = stack.own_frame
    if stack.is_idle:
        return ANSWERED
    if stack.waits_in:
        return f"in {stack.waits_in}" + (f", {own}" if own else "")
    if stack.compiles:
        return "for a compiler" + (f", {own}" if own else "")
    entered = f", after entering {', '.join(map(str, stack.pending))}" if stack.pending else ""
    if own:
        return f"in {own}{entered}"
    if any(frame.function == "synchronize" for frame in stack.frames):
        return f"{ALL_LAUNCHED}{entered}"
    return f"in {stack.frames[0]}{entered}" if stack.frames else f"somewhere{entered}"


def _told(ranks: Sequence[int], place: str) -> str:
    is_whole = place.startswith((ANSWERED, ALL_LAUNCHED))
    verb = "" if is_whole else "waits " if len(ranks) == 1 else "wait "
    return f"{_named(ranks)} {verb}{place}"


def _named(ranks: Sequence[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))}"


def _clash(found: Sequence[RankStack]) -> str | None:
    """Name the ranks that met each other in different collectives, or in different numbers of them.

    A rank that is behind is no clash while it is still on its way.
    """
    waiting = {stack.rank: stack.waits_in for stack in found if stack.waits_in in COLLECTIVES}
    for group, calls in _by_group(found).items():
        numbers = [seq for _, seq in calls]
        is_met = all(waiting.keys() >= set(ranks) for ranks in calls.values())
        if len(set(numbers)) < len(numbers) or (is_met and len(calls) > 1):
            told = ", ".join(
                f"{_named(ranks)} {call} (seq {seq})" for (call, seq), ranks in calls.items()
            )
            return f"collectives of group {group} do not match: {told}"
    is_told = any(stack.entered for stack in found)
    return None if is_told or len(set(waiting.values())) < 2 else "collectives do not match"


def _by_group(found: Sequence[RankStack]) -> dict[str, dict[tuple[str, int], list[int]]]:
    """Return for each group the collectives that ranks entered last, with these ranks."""
    groups: dict[str, dict[tuple[str, int], list[int]]] = {}
    for stack in found:
        for entered in stack.entered:
            if entered.call not in PAIRWISE:
                calls = groups.setdefault(entered.group, {})
                calls.setdefault((entered.call, entered.seq), []).append(stack.rank)
    return groups
