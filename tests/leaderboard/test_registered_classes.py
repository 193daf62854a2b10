"""A failure mode, a backend or a class of hardware that is added changes no old result."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from evaluator.messages.job import Backend
from evaluator.messages.report import Verdict
from leaderboard.board_pages import matrix_rows
from leaderboard.delivery.cached_answers import CACHED
from leaderboard.figures.charts.boards import MODE_COLOURS
from leaderboard.kit.links import url
from leaderboard.metrics import failures
from leaderboard.metrics.failures import CORRECT, ENDINGS, Ending
from leaderboard.models import LeaderboardRow, Problem, ProblemAggregate, Run, Submission, Summary
from leaderboard.models.choices import BACKENDS, COUNTED_VERDICTS
from leaderboard.read_model import boards
from leaderboard.runs.hosts import register
from tests.leaderboard import factory

pytestmark = pytest.mark.django_db
NEW = Ending("register spill", "k", "#123456", ())
PAGES = (
    *("/", "/?p=1.5", "/?category=tensor", "/?backend=pytorch", "/?nccl=no", "/matrix"),
    *("/matrix?nccl=no", "/matrix?category=tensor", "/categories", "/categories/tensor"),
    *("/problems", "/problems/1-allreduce", "/feed.atom"),
)
TWINS = ("/leaderboard", "/matrix", "/categories", "/problems", "/problems/1-allreduce")
FIGURES = ("fast-p", "pass-k", "spreads", "utilisations")
OUTCOMES = (Verdict.OUTPUT_MISMATCH, Verdict.BUILD_ERROR, Verdict.TIMEOUT, Verdict.OK)


@pytest.fixture
def site() -> Submission:
    problems = [factory.make_problem(), factory.make_problem(2, "gemm", "expert")]
    for n, name in enumerate(("Fast", "Close", "Slow")):
        submission = factory.make_submission(name, k=3)
        for problem in problems:
            for verdict in OUTCOMES[n:]:
                factory.make_judged(submission, problem, verdict, speedup=2.0 - 0.6 * n)
    return Submission.objects.get(model__name="Close")


def told(client: Client, own: Submission) -> dict[str, object]:
    """What every page says of results: the bodies of its tables, the whole of its twins."""
    CACHED.clear()
    boards._MEMOISED.clear()
    run = Run.objects.filter(kernel__submission=own).latest("finished_at")
    ours = [url("submission", own.pk), url("model", own.model.slug), url("run", run.pk)]
    ours += [url("kernel", run.kernel.source_id)]
    numbers = list(Submission.objects.order_by("pk").values_list("pk", flat=True))
    compared = "{}?a={}&b={}".format(url("compare"), *numbers)
    pages = {page: client.get(page) for page in (*PAGES, *ours, compared)}
    twins = [f"{stem}.{form}" for stem in (*TWINS, *ours) for form in ("json", "csv")]
    twins += [f"/figures/{name}.json" for name in FIGURES]
    found = {twin: client.get(twin) for twin in twins}
    statuses = {name: one.status_code for name, one in {**pages, **found}.items()}
    assert set(statuses.values()) == {200}, statuses
    tables = {
        page: re.findall(r"<tbody.*?</tbody>", response.content.decode(), re.DOTALL)
        for page, response in pages.items()
    }
    assert tables["/"]
    return {**tables, **{name: response.content for name, response in found.items()}}


def rows_stored() -> list[object]:
    return [list(kind._default_manager.values()) for kind in (Summary, LeaderboardRow)]


def add_everything(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """As one more row of each table does, when the site starts anew."""
    endings = (*ENDINGS[:at], NEW, *ENDINGS[at:])
    modes = tuple(ending.mode for ending in endings)
    for name, module in list(sys.modules.items()):
        if name.startswith("leaderboard.") and hasattr(module, "FAILURE_MODES"):
            monkeypatch.setattr(module, "FAILURE_MODES", modes)
    monkeypatch.setitem(MODE_COLOURS, NEW.mode, NEW.colour)
    monkeypatch.setattr(
        matrix_rows, "FAILURES", {**matrix_rows.FAILURES, NEW.mode: matrix_rows.HALF}
    )
    monkeypatch.setitem(failures._MODE_OF_CAUSE, "spill", NEW.mode)
    BACKENDS.append(("hip", "hip"))
    register("b300x8", "8 x B300")


def test_old_results_stay_as_they_are(
    site: Submission, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, stored = told(client, site), rows_stored()
    for at in range(len(ENDINGS)):
        with monkeypatch.context() as patch:
            try:
                add_everything(patch, at)
                assert told(client, site) == before, at
                assert stored == rows_stored(), at
            finally:
                BACKENDS.remove(("hip", "hip"))


def test_new_results_are_counted_beside_old_ones(
    site: Submission, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        add_everything(monkeypatch, 2)
        problem = Problem.objects.get(number=1)
        before = ProblemAggregate.objects.get(problem=problem).modes
        kernel = factory.make_kernel(site, problem, attempt=9, source="# spills\n")
        run = factory.make_run(kernel)
        factory.finish(run, factory.make_report(run, Verdict.RUNTIME_ERROR, cause="spill"))
        after = ProblemAggregate.objects.get(problem=problem).modes
        assert after == {**before, NEW.mode: 1}
    finally:
        BACKENDS.remove(("hip", "hip"))


def test_every_class_is_registered_wherever_it_is_asked_for() -> None:
    of_verdicts = [verdict for ending in ENDINGS for verdict in ending.verdicts]
    assert sorted(of_verdicts) == sorted(COUNTED_VERDICTS)
    letters = [ending.letter for ending in ENDINGS if ending.mode != CORRECT]
    assert len(set(letters)) == len(letters)
    css = (Path(settings.BASE_DIR) / "static" / "css" / "site.css").read_text()
    assert [letter for letter in letters if f".matrix .{letter} {{" not in css] == []
    assert ENDINGS[-1].mode == CORRECT
    assert [value for value, _ in BACKENDS] == [one.value for one in Backend]
