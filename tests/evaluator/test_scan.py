"""Which lines of a source show what a flag says."""

from __future__ import annotations

from evaluator.diagnosis.scan import MOST_LINES, lines_of, scan_source

SOURCE = """import gc
import torch.distributed as dist


def solution(x):
    dist.all_reduce(x)
    dist.broadcast(x, 0)
    return gc.get_objects()
"""


def test_flags_come_with_their_lines() -> None:
    assert lines_of(SOURCE) == {"uses_nccl": [6, 7], "static:garbage-collector": [8]}
    assert set(lines_of(SOURCE)) == set(scan_source(SOURCE))


def test_lines_are_counted_as_editors_count_them() -> None:
    assert lines_of("x = '\x0c\u2028'\nall_reduce(x)\n") == {"uses_nccl": [2]}


def test_a_flag_names_no_more_lines_than_a_reader_wants() -> None:
    assert len(lines_of("all_reduce(x)\n" * 1000)["uses_nccl"]) == MOST_LINES
