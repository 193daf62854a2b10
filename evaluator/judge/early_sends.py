"""Sees that nothing leaves a GPU while the inputs of a call are sealed.

Sealed inputs are noise to whoever lacks the key, but noise can be sent ahead: then only keys are
left to send once the clock runs. So the judge watches some calls, drawn in secret, instead of
timing them: at the moment when their gate could open it asks the driver what has left each GPU
since before the inputs were there. Until that moment nothing tells a watched call from a timed one.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Iterator, Sequence

from evaluator.host.gpus import Gpu
from evaluator.host.links import Count, Sent, counters, sent_since
from evaluator.messages.faults import Fault
from evaluator.messages.report import Verdict

ONE_OF = 5  # calls is watched
MOST_NVLINK_BYTES = 64 << 10  # an honest call has sent none by then
# Over PCIe gates ask host memory whether they may open, the driver answers what it is asked, and a
# GPU asks for each part of its inputs: 9.4 % of their bytes.
MOST_PCIE_BYTES, PCIE_BYTES_PER_S, PCIE_SHARE = 384 << 10, 24 << 20, 0.125


class Watch:
    """Watches a side's calls by what counts the bytes that leave its GPUs; none where there are
    none. It has watched so many `calls`."""

    def __init__(self, count: Count) -> None:
        self.calls = 0
        self._count, self._before, self._began_s = count, list[Sent](), 0.0

    @property
    def has_seen(self) -> bool:
        """Return whether a call was watched, if any can be."""
        return self.calls > 0 or not self._before

    def begin(self) -> bool:
        """Note what has been sent before inputs are there; return whether to watch the call."""
        self._began_s, self._before = time.monotonic(), self._count()
        return bool(self._before) and secrets.randbelow(ONE_OF) == 0

    def check(self, received: Sequence[int]) -> None:
        """Raise Fault for a GPU that has sent more since than an honest call can have, to which so
        many bytes of inputs came."""
        self.calls += 1
        now = self._count()
        idle_bytes = MOST_PCIE_BYTES + PCIE_BYTES_PER_S * (time.monotonic() - self._began_s)
        for rank, (before, after) in enumerate(zip(self._before, now, strict=True)):
            sent, most_pcie = sent_since(before, after), idle_bytes + PCIE_SHARE * received[rank]
            for way, most in (("NVLink", MOST_NVLINK_BYTES), ("PCIe", most_pcie)):
                if sent[way] > most:
                    message = f"the GPU of rank {rank} sent {sent[way] >> 10} KiB over {way} before"
                    message += " its inputs could be read"
                    raise Fault(Verdict.PROTOCOL_VIOLATION, "sent_early", message, ranks=[rank])


@contextlib.contextmanager
def watching(gpus: Sequence[Gpu]) -> Iterator[Watch]:
    """Yield what watches calls on these GPUs."""
    with counters(gpus) as count:
        yield Watch(count)
