"""Whatever becomes of the oracle's workers is an error of ours that the judge can catch."""

from __future__ import annotations

import multiprocessing
import time
from collections import defaultdict
from multiprocessing.connection import Connection

import pytest

from evaluator.host.load import ANSWERS_S
from evaluator.messages.faults import EvaluatorError
from evaluator.oracle.rank import OracleRank
from evaluator.oracle.worker_process import Order
from evaluator.oracle.workers import OracleWorkers


def one_worker() -> tuple[OracleWorkers, Connection]:
    """Workers of one rank, without a process, and the end of the pipe that is the worker's."""
    ours, theirs = multiprocessing.Pipe()
    own = object.__new__(OracleWorkers)
    own.pipes, own.is_idle, own.share, own.spent_s = [ours], True, 1.0, defaultdict(float)
    return own, theirs


def test_a_command_to_one_that_is_gone_is_our_error() -> None:
    own, theirs = one_worker()
    theirs.close()
    with pytest.raises(EvaluatorError, match="rank 0 died"):
        own.tell(OracleRank.end)


@pytest.mark.parametrize("has_read", [False, True])
def test_one_that_dies_over_a_command_is_our_error(has_read: bool) -> None:
    own, theirs = one_worker()
    own.tell(OracleRank.end)
    if has_read:
        assert isinstance(theirs.recv(), Order)
    theirs.close()  # with a command unread, that resets the connection
    with pytest.raises(EvaluatorError, match="rank 0 died during end"):
        own.answers("end")


@pytest.mark.parametrize("share", [1.0, 0.25])
def test_all_answers_of_a_run_share_a_limit_of_time(share: float) -> None:
    own, theirs = one_worker()
    own.share = share
    own.spent_s["check"] = share * ANSWERS_S
    theirs.send(("ok", None))
    assert own.answers("end") == [None]
    began = time.monotonic()
    with pytest.raises(EvaluatorError, match="gave no answer to end"):
        own.answers("end")
    assert time.monotonic() - began < 5
