"""Counts the bytes that leave GPUs, as their driver does (NVML)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from evaluator.host.gpus import Gpu, handle_of, session
from evaluator.messages.faults import EvaluatorError

Sent = dict[str, int]  # the bytes that have left a GPU, by the way that they took
Count = Callable[[], list[Sent]]
ALL_LINKS = 0xFFFFFFFF  # a field's scope: the sum over a GPU's links
WRAPS_AT = 1 << 32  # the driver counts bytes over PCIe in 32 bits, and KiB over NVLink


@contextlib.contextmanager
def counters(gpus: Sequence[Gpu]) -> Iterator[Count]:
    """Yield a function that returns what has left each GPU so far; nothing where there is none.

    A peer that reads a GPU's memory is counted as the GPU that sends. It raises EvaluatorError
    where the driver does not count.
    """
    with session() as nvml:
        handles = [handle_of(nvml, gpu) for gpu in gpus] if nvml is not None else []

        def count() -> list[Sent]:
            fields = [
                (nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, ALL_LINKS),
                (nvml.NVML_FI_DEV_PCIE_COUNT_TX_BYTES, 0),
            ]
            found = []
            for handle in handles:
                values = nvml.nvmlDeviceGetFieldValues(handle, fields)
                if any(value.nvmlReturn != nvml.NVML_SUCCESS for value in values):
                    raise EvaluatorError("this driver does not count what leaves its GPUs")
                kib, nbytes = (int(value.value.ullVal) for value in values)
                found.append({"NVLink": kib << 10, "PCIe": nbytes})
            return found

        yield count if handles else list


def lacks_counters(gpus: Sequence[Gpu]) -> bool:
    """Return True if the driver does not count what leaves these GPUs."""
    try:
        with counters(gpus) as count:
            count()
    except EvaluatorError:
        return True
    return False


def sent_since(before: Sent, after: Sent) -> Sent:
    """Return the bytes that left a GPU between two counts."""
    wraps_at = {"NVLink": WRAPS_AT << 10, "PCIe": WRAPS_AT}
    return {way: (nbytes - before[way]) % wraps_at[way] for way, nbytes in after.items()}
