"""Hostile and honest kernels through the whole evaluator: the judge's specification."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator.evaluate import Cancelled
from evaluator.messages.codec import decode, encode
from evaluator.messages.report import Report, Verdict
from evaluator.sandbox.sandbox import REPOSITORY
from tests.evaluator.host_traces import nothing_left_behind
from tests.evaluator.judging import HURRIED, PREFORK, end_kept, judged
from tests.evaluator.kernel_files import KernelFile, MalformedHeader, all_in, named, read

MISBEHAVING = all_in("misbehaving")
ALL_REDUCE = named("honest", "all_reduce")
HONEST = all_in("honest")
LOG_MARGIN_BYTES = 200
TEXT_MAX_CHARS = 2000
SHADOW = Path("/etc/shadow")
KEEPERS = (PREFORK, HURRIED)


def _parameters(kernels: list[KernelFile]) -> list[object]:
    return [pytest.param(kernel, id=kernel.path.stem, marks=_marks(kernel)) for kernel in kernels]


def _marks(kernel: KernelFile) -> list[pytest.MarkDecorator]:
    """What is timed runs alone, unless it only has to pass and lets those beside it do so, too."""
    needs_all = kernel.timed and (kernel.threatens or not kernel.only_passes)
    marks = [
        *((pytest.mark.slow, kernel.slow), (pytest.mark.alone, needs_all)),
        (pytest.mark.similar, kernel.like is not None),
    ]
    return [mark for mark, is_set in marks if is_set]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The place for temporary files of all: a judge that has another serves nobody."""
    return tmp_path_factory.mktemp("judges")


@pytest.fixture(scope="module", autouse=True)
def _warm(folder: Path) -> Iterator[None]:
    """What a first evaluation opens for good is not left behind by the kernel that follows it;
    whatever threatened the host, an honest kernel is ok afterwards; and with the judges all of it
    is gone."""
    PREFORK.start()
    HURRIED.start()
    with end_kept():
        _judge(ALL_REDUCE)
    gc.collect()  # or what other tests left is closed whenever Python comes to it
    with nothing_left_behind(folder), end_kept():
        yield
        _judge(ALL_REDUCE)


@pytest.mark.parametrize("kernel", _parameters(MISBEHAVING))
def test_a_misbehaving_kernel_gets_its_verdict_and_harms_nothing(
    kernel: KernelFile, folder: Path
) -> None:
    with nothing_left_behind(folder, KEEPERS):
        _judge(kernel)


@pytest.mark.parametrize("kernel", _parameters(HONEST))
def test_an_honest_kernel_is_ok(kernel: KernelFile, folder: Path) -> None:
    with nothing_left_behind(folder, KEEPERS):
        _judge(kernel)


def test_a_cancelled_run_leaves_nothing_behind(folder: Path) -> None:
    began = time.monotonic()
    with nothing_left_behind(folder, KEEPERS), pytest.raises(Cancelled):
        judged(named("misbehaving", "daemon").job, lambda _: time.monotonic() - began > 3)


def test_there_are_enough_kernels_of_both_kinds() -> None:
    assert len(MISBEHAVING) >= 40
    assert len(HONEST) >= 10
    assert {verdict for kernel in HONEST for verdict in kernel.verdicts} == {Verdict.OK}


@pytest.mark.parametrize("kernels", [MISBEHAVING, HONEST], ids=["misbehaving", "honest"])
def test_a_kernel_is_like_one_that_is_always_judged(kernels: list[KernelFile]) -> None:
    known = {kernel.path.stem: kernel for kernel in kernels}
    siblings = [known[kernel.like] for kernel in kernels if kernel.like]
    assert siblings
    assert not [kernel.path.stem for kernel in siblings if kernel.like]


def test_no_two_kernels_share_a_purpose() -> None:
    purposes = [kernel.purpose for kernel in MISBEHAVING + HONEST]
    assert len(set(purposes)) == len(purposes)


@pytest.mark.parametrize(
    ("header", "complaint"),
    [
        ("# cheat: no verdict", "give one `# verdict"),
        ("# verdict: ok", "one of `# cheat"),
        ("# verdict: fine\n# cheat: x", "'fine' is not a valid Verdict"),
        ("# verdict: ok\n# cheat: x\n# verdicts: ok", "is not a line `# key: value`"),
        ("# verdict: ok\n# verdict: oom\n# cheat: x", "is not a line `# key: value`"),
        ("# verdict: ok\n# cheat: x\n# limits: speed=3", "there is no limit 'speed'"),
        ("# verdict: ok\n# cheat: x\n# slow: no", "write `yes`"),
    ],
)
def test_a_malformed_header_is_named(header: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(header + "\n\ndef solution(tensor): ...\n")
    with pytest.raises(MalformedHeader, match=r"^kernel\.py: ") as caught:
        read(path)
    assert complaint in str(caught.value)


def _judge(kernel: KernelFile) -> None:
    report = judged(kernel.job, hurried=kernel.only_passes)
    _is_what_the_header_says(kernel, report)
    _is_safe_to_store(kernel, report)


def _is_what_the_header_says(kernel: KernelFile, report: Report) -> None:
    assert report.verdict in kernel.verdicts, f"{report.message} ({report.evidence})"
    assert kernel.cause in (None, report.cause), report.message
    assert kernel.flags <= set(report.flags), report.flags
    if kernel.ranks:
        assert report.ranks == kernel.ranks, report.message
    if kernel.log is not None:
        assert any(kernel.log in log.text for log in report.logs), report.logs
    if kernel.at_least_us is not None:
        assert report.timing is not None
        assert report.timing.kernel_us >= kernel.at_least_us
    if kernel.speedup_below is not None and report.timing is not None:
        assert report.timing.speedup_low < kernel.speedup_below, report.message


def _is_safe_to_store(kernel: KernelFile, report: Report) -> None:
    """Bounded, the same after a round trip, without control characters, and without the host's
    secrets and folders."""
    text = json.dumps(encode(report))
    assert decode(Report, json.loads(text)) == report
    assert report.message
    assert max(len(report.message), len(report.evidence or "")) <= TEXT_MAX_CHARS
    for log in report.logs:
        size = len(log.text.encode())
        assert size <= kernel.limits.log_bytes + LOG_MARGIN_BYTES, f"rank {log.rank}: {size} bytes"
    shown = [report.message, report.evidence or "", *(log.text for log in report.logs)]
    assert not {char for part in shown for char in part if char < " " and char not in "\n\t"}
    assert not [secret for secret in _secrets() if secret in text]
    assert f"{REPOSITORY}/" not in text


def _secrets() -> list[str]:
    """The lines of the password file, where this process may read it."""
    try:
        return [line for line in SHADOW.read_text().splitlines() if len(line) > 8]
    except OSError:
        return []
