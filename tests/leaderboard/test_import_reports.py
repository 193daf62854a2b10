"""Reports that a judge made elsewhere become runs like those that a worker reports here."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from evaluator.messages.job import Backend, Job
from evaluator.messages.report import GpuState, Isolation, Verdict
from leaderboard.models import (
    DataVersion,
    Hardware,
    Kernel,
    LanguageModel,
    Problem,
    Run,
    Source,
    Submission,
    Summary,
)
from leaderboard.runs import evaluation, imported_reports
from tests.benchmark_scripts import script
from tests.leaderboard import factory
from tests.leaderboard.running import claim, unsaved

pytestmark = pytest.mark.server

Line = dict[str, Any]
Write = Callable[..., Path]


PRODUCER: Any = script("reports_file")  # what the benchmarks on GPUs write their lines with


def line_of(
    problem: Problem, verdict: Verdict = Verdict.OK, *, attempt: int = 1, **changes: Any
) -> Line:
    source = f"{factory.SOURCE}# {problem.slug} {attempt}\n"
    report = factory.make_report(unsaved(problem, source), verdict)
    job = Job(problem=problem.slug, source=source, backend=Backend.PYTORCH)
    return {**PRODUCER.line(PRODUCER.REFERENCES, attempt, job, report), **changes}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def lines(*given: Line, name: str = "some.jsonl.gz") -> Path:
        path = tmp_path / name
        data = "".join(json.dumps(line) + "\n" for line in given).encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return lines


def _load(*paths: Path) -> str:
    out = StringIO()
    call_command("import_reports", *map(str, paths), stdout=out)
    return out.getvalue()


def _counts() -> list[int]:
    tables = (Submission, Kernel, Run, Summary, Source, Hardware, LanguageModel)
    return [*(table._default_manager.count() for table in tables), DataVersion.objects.current()]


def test_a_file_becomes_a_submission_with_its_runs(problem: Problem, write: Write) -> None:
    second = factory.make_problem(2, "allgather")
    failed = line_of(second, Verdict.OUTPUT_MISMATCH)
    line = line_of(problem)
    said = _load(write(line, failed))
    assert said == "some.jsonl.gz: 1 submissions, 2 runs\n"
    submission = Submission.objects.get()
    assert (submission.model.name, submission.model.is_baseline) == ("PyTorch + NCCL", True)
    assert (submission.trust, submission.visibility, submission.k) == ("verified", "public", 1)
    assert submission.owner.get_username() == "pkb"
    assert not submission.owner.has_usable_password()
    verdicts = Summary.objects.ranked().values_list("problem_id", "made", "correct")
    assert sorted(verdicts) == [(1, 1, 1), (2, 1, 0)]
    run = Run.objects.get(verdict="ok")
    assert run.status == "done"
    assert run.finished_at == datetime.fromisoformat(line["judged_at"])
    assert run.finished_at - run.created_at == timedelta(seconds=4.15)
    assert run.report
    assert run.report["timing"]["speedup"] == run.speedup


def test_a_run_is_stored_as_a_worker_would_have_had_it_stored(
    run: Run, problem: Problem, write: Write
) -> None:
    line = line_of(problem)
    lease = claim(run)
    told = {**line["report"], "kernel_digest": run.kernel.source_id}
    evaluation.finish(run.pk, lease.holding, told)
    run.refresh_from_db()
    _load(write(line))
    other = Run.objects.exclude(pk=run.pk).get()
    apart = {"id", "kernel", "created_at", "started_at", "finished_at", "rung_at", "report_packed"}
    apart.add("token")
    for field in Run._meta.fields:
        if field.name not in apart:
            assert getattr(other, field.name) == getattr(run, field.name), field.name


def test_repeating_changes_nothing(problem: Problem, write: Write) -> None:
    path = write(line_of(problem))
    _load(path)
    before = _counts()
    assert _load(path) == "some.jsonl.gz: already stored\n"
    lines = gzip.decompress(path.read_bytes()).splitlines()
    plain = write(*map(json.loads, lines), name="some.jsonl")
    assert _load(plain) == "some.jsonl: already stored\n"
    assert _counts() == before


def test_each_model_harness_and_notes_is_a_submission(problem: Problem, write: Write) -> None:
    assert PRODUCER.by_hand()[0].model == imported_reports.JUDGE_TESTS
    changes: list[Line] = [{}, {"model": "Other"}, {"harness": "agentic"}, {"notes": "again"}]
    _load(write(*(line_of(problem, **change) for change in changes)))
    assert Submission.objects.count() == 4


def test_one_kernel_may_be_judged_on_several_machines(problem: Problem, write: Write) -> None:
    line = line_of(problem)
    gpus = {**line["job"], "hardware": "h200x2", "device": "cuda", "dtype": "bfloat16"}
    state = {"name": "NVIDIA H200", "sm_mhz": 1, "memory_mhz": 1, "temperature_c": 1}
    gpu = {**state, "power_w": 1.0, "throttle_reasons": []}
    where = {**line["report"]["environment"], "hardware": "2 x NVIDIA H200"}
    report = {**line["report"], "gpus": [gpu, gpu], "environment": where, "setting": None}
    assert set(report["gpus"][0]) == set(GpuState.__dataclass_fields__)
    _load(write(line, {**line, "job": gpus, "report": report}))
    assert (Kernel.objects.count(), Run.objects.count(), Summary.objects.count()) == (1, 2, 2)
    hardware = Hardware.objects.get(slug="h200x2")
    assert (hardware.device, hardware.max_world_size) == ("cuda", 2)
    assert hardware.facts["environment"]["gpus"] == ["NVIDIA H200"] * 2


def test_another_version_of_a_problem_is_kept_and_said(problem: Problem, write: Write) -> None:
    line = line_of(problem)
    Problem.objects.update(digest="0" * 64)
    said = _load(write(line))
    assert "some.jsonl.gz:1: of another version of its problem; does not count" in said
    assert Run.objects.count() == 1
    assert not Run.objects.counted()
    assert not Summary.objects.exists()


def test_what_was_judged_without_isolation_is_not_verified(problem: Problem, write: Write) -> None:
    line = line_of(problem)
    line["report"]["isolation"] = Isolation.NONE.value
    _load(write(line))
    assert Submission.objects.get().trust == "self-reported"
    assert not Summary.objects.exists()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"k": "one"}, "line.k must be int"),
        ({"surplus": 1}, "unknown fields: surplus"),
        ({"k": 0}, "attempt must lie between 1 and k"),
        ({"attempt": 2}, "attempt must lie between 1 and k"),
        ({"step": 0}, "step above 0"),
        ({"problem": "no_such"}, "There is no problem"),
        ({"source": "def solution(): pass"}, "another kernel"),
        ({"source": "\ud800"}, "surrogates not allowed"),
        ({"model": "\u2603"}, "needs a letter"),
        ({"model": "x" * 81}, "at most 80"),
        ({"notes": "a\0b"}, "must hold what a database takes"),
        ({"vendor": "\udfff"}, "must hold what a database takes"),
        ({"harness": "telepathy"}, "not a valid choice"),
        ({"judged_at": "2026-01-01T00:00:00"}, "with an offset"),
        ({"judged_at": "2999-01-01T00:00:00+00:00"}, "in the past"),
        ({"judged_at": "yesterday"}, "yesterday"),
    ],
)
def test_a_wrong_line_is_named_and_nothing_is_stored(
    problem: Problem, write: Write, change: Line, reason: str
) -> None:
    before = _counts()
    fine = line_of(factory.make_problem(2, "allgather"))
    with pytest.raises(CommandError, match=r"some\.jsonl\.gz:2: ") as refused:
        _load(write(fine, {**line_of(problem), **change}))
    assert reason in str(refused.value)
    assert _counts() == before


@pytest.mark.parametrize(
    ("part", "change", "reason"),
    [
        ("job", {"hardware": "Big Machine"}, "does not name a class of hardware"),
        ("job", {"hardware": "h200x2"}, "no 2 ranks on cpu"),
        ("job", {"world_size": 16}, "no 16 ranks on cpu"),
        ("job", {"dtype": "int3"}, "line.job.dtype"),
        ("job", {"size": "x" * 33}, "size"),
        ("report", {"verdict": "host_unsupported", "timing": None}, "says nothing of its kernel"),
        ("report", {"timing": None}, "needs its trials and"),
        ("report", {"problem": "allgather"}, "another problem"),
    ],
)
def test_a_wrong_job_or_report_is_named(
    problem: Problem, write: Write, part: str, change: Line, reason: str
) -> None:
    before = _counts()
    line = line_of(problem)
    with pytest.raises(CommandError, match=r"some\.jsonl\.gz:1: ") as refused:
        _load(write({**line, part: {**line[part], **change}}))
    assert reason in str(refused.value)
    assert _counts() == before


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_what_is_no_number_is_refused(problem: Problem, write: Write, number: str) -> None:
    line = line_of(problem)
    line["report"]["phase_s"]["build"] = "here"
    path = write(line, name="some.jsonl")
    path.write_text(path.read_text().replace('"here"', number))
    with pytest.raises(CommandError, match=f":1: {number} is not a number"):
        _load(path)


def test_lines_that_contradict_each_other_are_refused(problem: Problem, write: Write) -> None:
    line = line_of(problem)
    with pytest.raises(CommandError, match=r":2: vendor differs from .*:1"):
        _load(write(line, {**line_of(problem, attempt=1), "vendor": "Other"}))
    other = line_of(problem, attempt=2, k=2)
    with pytest.raises(CommandError, match=":2: another kernel than"):
        _load(write({**line, "k": 2}, {**other, "attempt": 1}))


def test_a_language_model_does_not_become_a_baseline(problem: Problem, write: Write) -> None:
    factory.make_submission()
    slug = LanguageModel.objects.values_list("slug", flat=True).get()
    with pytest.raises(CommandError, match="recorded as no baseline"):
        _load(write(line_of(problem, model=slug)))
    assert not LanguageModel.objects.get().is_baseline


def test_one_bad_file_of_several_stores_none(problem: Problem, write: Write) -> None:
    before = _counts()
    good = write(line_of(problem), name="good.jsonl")
    for bad in (write(name="bad.jsonl"), Path("no/such.jsonl.gz")):
        with pytest.raises(CommandError, match="nothing was stored"):
            _load(good, bad)
    broken = write(name="broken.jsonl.gz")
    broken.write_bytes(b"no gzip")
    with pytest.raises(CommandError, match="cannot be read"):
        _load(broken)
    assert _counts() == before


def test_without_files_it_loads_those_that_are_shipped(
    problem: Problem, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(line_of(problem))
    monkeypatch.setattr(imported_reports, "SHIPPED", path.parent)
    assert _load() == "fixtures/house: 1 kernels\nsome.jsonl.gz: 1 submissions, 1 runs\n"


def test_lines_are_added_to_what_a_file_holds(problem: Problem, tmp_path: Path) -> None:
    path = tmp_path / "added.jsonl.gz"
    author, attempts = PRODUCER.by_hand()
    assert min(attempts.values()) == 1
    assert max(attempts.values()) == author.k
    for attempt in (1, 2):
        source = f"{factory.SOURCE}# {attempt}\n"
        report = factory.make_report(unsaved(problem, source))
        job = Job(problem=problem.slug, source=source)
        PRODUCER.append(path, author, attempt, job, report)
    assert "1 submissions, 2 runs" in _load(path)
    assert not LanguageModel.objects.get().is_baseline
