"""The pages of a submission and of a language model."""

from __future__ import annotations

import csv
import io
import json
import re

import plotly.graph_objects as go
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evaluator.messages.report import Verdict
from leaderboard.figures.charts import submissions as charts
from leaderboard.figures.charts.submissions import Series, Trail
from leaderboard.model_pages import submission_kernels, submission_progress
from leaderboard.model_pages.submission_progress import Progress
from leaderboard.models import DataVersion, Problem, Run, Source, Submission
from leaderboard.read_model.boards import SETTING_FIELDS, Setting
from tests.leaderboard import factory

pytestmark = pytest.mark.django_db

HOSTILE = "<script>alert(1)</script>\u202e"
FIGURES = ("speedups", "submission-failures", "progress")


def step(submission: Submission, problem: Problem, number: int, speedup: float | None) -> Run:
    """A judged step of the first attempt; None is a wrong one."""
    kernel = submission.kernels.create(
        problem=problem,
        attempt=1,
        step=number,
        backend="pytorch",
        source=Source.objects.keep(f"{factory.SOURCE}# {submission.pk} {number}\n")[0],
    )
    run = factory.make_run(kernel)
    verdict = Verdict.OUTPUT_MISMATCH if speedup is None else Verdict.OK
    return factory.finish(run, factory.make_report(run, verdict, speedup or 1.0))


@pytest.fixture
def agentic(problem: Problem) -> Submission:
    """One problem in four steps, another that failed in one."""
    made = factory.make_submission("Stepper", "agentic")
    Submission.objects.filter(pk=made.pk).update(step_budget=4, cost_usd=12.5, notes=HOSTILE)
    for number, speedup in enumerate((None, 0.5, 2.0, 1.5), start=1):
        step(made, problem, number, speedup)
    factory.make_judged(made, factory.make_problem(2, "gemm", "expert"), Verdict.TIMEOUT)
    return made


def test_a_submission_tells_its_cost_notes_and_last_steps(
    agentic: Submission, client: Client
) -> None:
    text = client.get(f"/submissions/{agentic.pk}").content.decode()
    for told in ("cost 12.50 USD", "up to 4 steps", "1.50×", "&lt;script&gt;alert(1)", "gemm"):
        assert told in text, told
    # The best step does not count, the last one does.
    assert "2.00×" not in text
    assert HOSTILE not in text
    assert text.count('class="state bad"') == 1
    assert "1 attempt" in text


def test_kernels_are_filtered_by_verdict(agentic: Submission, client: Client) -> None:
    address = f"/submissions/{agentic.pk}"
    whole = client.get(address).content.decode()
    assert 'href="?verdict=timeout#kernels">timeout 1</a>' in whole
    rows = client.get(f"{address}.json?verdict=timeout").json()["kernels"]
    assert [row["verdict"] for row in rows] == ["timeout"]
    assert len(client.get(f"{address}.json").json()["kernels"]) == 5
    table = csv.DictReader(
        io.StringIO(client.get(f"{address}.csv?verdict=output_mismatch").content.decode())
    )
    assert [(row["step"], row["verdict"]) for row in table] == [("1", "output_mismatch")]
    assert "No attempt ended like that" in client.get(f"{address}?verdict=oom").content.decode()
    assert client.get(f"{address}?verdict=maybe").status_code == 400


def test_a_long_list_comes_in_parts_and_its_twins_whole(
    agentic: Submission, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leaderboard.model_pages.submission.ROWS_A_PAGE", 1)
    address = f"/submissions/{agentic.pk}"
    first = client.get(address).content.decode()
    assert "1 to 1 of 2 attempts, 5 kernels in all" in first
    assert f'<a href="{address}?page=2#kernels" rel="next">' in first
    assert "timeout</a>" not in first
    second = client.get(f"{address}?page=2").content.decode()
    assert "timeout</a>" in second
    assert f'<a href="{address}#kernels" rel="prev">' in second
    assert len(client.get(f"{address}.json?page=2").json()["kernels"]) == 5
    assert client.get(f"{address}?page=3").status_code == 404
    assert client.get(f"{address}?page=2&verdict=timeout").status_code == 404


def test_progress_keeps_the_best_so_far(agentic: Submission, client: Client) -> None:
    spec = client.get(f"/figures/progress.json?submission={agentic.pk}").json()
    lines = {line.name: list(line.y) for line in go.Figure(spec).data}
    assert lines["1. Problem allreduce"] == [None, 0.5, 2.0, 2.0]
    table = client.get(f"/figures/progress.csv?submission={agentic.pk}").content.decode()
    assert table.splitlines()[1] == "solved,0,1,1,1"


def test_shares_by_step_are_those_of_attempts_stopped_then(
    agentic: Submission, client: Client
) -> None:
    right, fast = client.get(f"/figures/by-step.json?submission={agentic.pk}").json()["data"]
    assert (right["y"], fast["y"]) == ([0, 50, 50, 50], [0, 0, 50, 50])
    table = client.get(f"/figures/by-step.csv?submission={agentic.pk}").text
    assert table.splitlines()[3] == "step 3,50.0,50.0"
    assert "What more steps bring" in client.get(f"/submissions/{agentic.pk}").text


def test_steps_of_which_none_is_right_draw_no_progress(problem: Problem, client: Client) -> None:
    made = factory.make_submission("Stepper", "agentic")
    Submission.objects.filter(pk=made.pk).update(step_budget=2)
    for number in (1, 2):
        step(made, problem, number, None)
    page = client.get(f"/submissions/{made.pk}").content.decode()
    assert "Progress by step" not in page
    assert "How attempts end" in page


def test_the_typical_attempt_is_the_median_of_what_is_solved() -> None:
    progress = [
        Progress(name="a", best=(None, 1.0)),
        Progress(name="b", best=(None, 4.0)),
        Progress(name="c", best=(None, 2.0)),
    ]
    assert submission_progress.typical(progress) == ([0, 3], [None, 2.0])


def test_a_run_in_another_size_does_not_stand_for_a_kernel(problem: Problem) -> None:
    made = factory.make_submission()
    run = factory.make_judged(made, problem, speedup=2.0)
    factory.make_judged(made, factory.make_problem(2, "gemm"), speedup=2.0)
    other = factory.make_run(run.kernel, size="standard")
    factory.finish(other, factory.make_report(other, speedup=9.0))
    setting = setting_of(run)
    found = submission_kernels.kernels_of(made, setting)
    assert [judged.right_speedup for judged in found] == [2.0, 2.0]


def test_how_kernels_ended_is_read_alike_narrow_and_wide(problem: Problem) -> None:
    made = factory.make_submission()
    run = factory.make_judged(made, problem, speedup=2.0)
    again = factory.make_run(run.kernel)
    factory.finish(again, factory.make_report(again, Verdict.TIMEOUT))
    other = factory.make_kernel(made, factory.make_problem(2, "gemm"))
    for kernel in (run.kernel, other):
        elsewhere = factory.make_run(kernel, size="standard")
        factory.finish(elsewhere, factory.make_report(elsewhere, Verdict.OUTPUT_MISMATCH))
    factory.make_run(factory.make_kernel(made, factory.make_problem(3, "waits")))
    factory.make_kernel(made, factory.make_problem(4, "never"))
    for setting, first in ((setting_of(again), "timeout"), (None, "output_mismatch")):
        narrow = submission_kernels.ended(made, setting)
        wide = submission_kernels.kernels_of(made, setting)
        assert [one.problem for one in narrow] == [1, 2, 3, 4]
        assert [one.verdict for one in narrow] == [first, "output_mismatch", None, None]
        assert [one[:5] for one in wide] == [one[:5] for one in narrow]
        assert [one.status for one in wide] == ["done", "done", "queued", None]


def setting_of(run: Run) -> Setting:
    return Setting(**{name: getattr(run, name) for name in SETTING_FIELDS})


@pytest.mark.parametrize("name", FIGURES)
def test_a_private_submission_keeps_its_figures_to_itself(name: str, problem: Problem) -> None:
    secret = factory.make_submission("Secret", visibility="private")
    step(secret, problem, 1, 0.5)
    step(secret, problem, 2, 2.0)
    owner, other = Client(), Client()
    owner.force_login(factory.make_user("owner"))
    other.force_login(factory.make_user("other"))
    for form in ("", ".json", ".csv"):
        address = f"/figures/{name}{form}?submission={secret.pk}"
        assert owner.get(address).status_code == 200
        assert other.get(address).status_code == 404
    page = f"/submissions/{secret.pk}?verdict=ok"
    assert owner.get(page).status_code == 200
    assert other.get(page).status_code == 404
    text = owner.get(page).content.decode()
    assert "compare with others" not in text
    assert "in the matrix" not in text


@pytest.fixture
def model(agentic: Submission, problem: Problem) -> str:
    """Address of a model with two submissions, a private one and a claim."""
    second = factory.make_submission("Stepper", k=2)
    factory.make_judged(second, problem, speedup=3.0)
    secret = factory.make_submission("Stepper", "repeated", visibility="private")
    factory.make_judged(secret, problem, speedup=9.0)
    factory.make_publication("Stepper")
    return f"/models/{agentic.model.slug}"


def test_a_model_tells_where_it_is_strong_and_weak(model: str, client: Client) -> None:
    text = client.get(model).content.decode()
    best, worst = text.index('id="best"'), text.index('id="worst"')
    assert "1. Problem allreduce" in text[best:worst]
    assert "3.00×" in text[best:worst]
    assert "2. Problem gemm" in text[worst:]
    assert "timeout" in text[worst:]
    assert "Never solved, by number, then the slowest" in text
    assert "Solved 1 of 2 problems" in text
    assert "9.00×" not in text
    assert "/compare?a=" in text
    assert "Speedup<small>" in text
    assert "Of roofline<small>" not in text  # a processor has none


def test_a_models_twin_holds_every_problem(model: str, client: Client) -> None:
    rows = client.get(f"{model}.json").json()["problems"]
    found = sorted((row["problem"], row["best_speedup"] or 0.0) for row in rows)
    assert found == [(1, 1.5), (1, 3.0), (2, 0.0)]


@pytest.mark.parametrize("name", ["model-speedups", "model-failures"])
def test_a_figure_of_a_model_is_served(name: str, model: str, client: Client) -> None:
    slug = model.rpartition("/")[2]
    response = client.get(f"/figures/{name}.json?model={slug}")
    assert go.Figure(response.json()).data
    table = client.get(f"/figures/{name}.csv?model={slug}").content.decode()
    assert "zero-shot, no." in table
    assert "repeated" not in table
    for unknown in ("", "nobody"):
        assert client.get(f"/figures/{name}.json?model={unknown}").status_code == 404


def test_a_model_known_from_a_private_submission_alone_has_no_figures(
    problem: Problem, client: Client
) -> None:
    secret = factory.make_submission("Secret", visibility="private")
    factory.make_judged(secret, problem)
    for name in ("model-speedups", "model-failures"):
        address = f"/figures/{name}.json?model={secret.model.slug}"
        assert client.get(address).status_code == 404


def test_pages_need_few_queries_besides_the_version(
    model: str, agentic: Submission, client: Client
) -> None:
    for address in (model, f"/submissions/{agentic.pk}"):
        with CaptureQueriesContext(connection) as queries:
            client.get(address)
        own = [q["sql"] for q in queries if "dataversion" not in q["sql"]]
        assert len(own) <= 5, own
    assert DataVersion.objects.current()


def test_figures_are_valid_and_escape_names() -> None:
    for spec in (
        charts.speedups_by_problem([Series(name=HOSTILE, points=((HOSTILE, 2.0), ("b", 3.0)))]),
        charts.progress([Trail(name=HOSTILE, best=(None, 1.0), typical=True)]),
    ):
        go.Figure(spec)
        assert json.loads(json.dumps(spec)) == spec
        assert "<script" not in json.dumps(spec)


def test_problems_stand_in_the_order_of_their_best_speedup() -> None:
    one = Series(name="one", points=(("slow", 1.0), ("fast", 2.0)))
    two = Series(name="two", points=(("slow", 4.0),))
    axis = charts.speedups_by_problem([one, two])["layout"]["yaxis"]
    assert axis["categoryarray"] == ["slow", "fast"]


def test_runs_are_found_by_their_kernel(agentic: Submission, client: Client) -> None:
    """In a walk along another index each kernel would read the runs of all others."""
    with CaptureQueriesContext(connection) as queries:
        client.get(f"/submissions/{agentic.pk}")
    asked = [one["sql"] for one in queries if 'FROM "leaderboard_kernel"' in one["sql"]]
    assert len(asked) == 2
    with connection.cursor() as cursor:
        for sql in asked:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
            steps = [row[3] for row in cursor.fetchall()]
            walked = [
                step for step in steps if "INDEX run_" in step and "run_of_kernel" not in step
            ]
            assert not walked, steps


@pytest.mark.server
def test_a_failed_check_is_listed_where_it_counts(problem: Problem, client: Client) -> None:
    """Also where the same kernel passed since in a setting that says nothing of this one."""
    other = factory.make_problem(2, "gemm", "expert")
    submission = factory.make_submission()
    failed = factory.make_judged(submission, other, Verdict.TIMEOUT, placement="shared")
    again = factory.make_run(failed.kernel, placement="shared", profile="upstream")
    factory.finish(again, factory.make_report(again))
    factory.make_judged(submission, problem)
    address = f"/submissions/{submission.pk}"
    page = client.get(f"{address}?placement=full").text
    assert "do not count towards" not in page
    told = client.get(f"{address}.json?placement=full").json()["kernels"]
    (row,) = [row for row in told if row["number"] == 2]
    assert (row["verdict"], row["run"], row["counts"]) == ("timeout", str(failed.pk), True)
    shown = client.get(f"{address}/2/attempt-1?placement=full").text
    assert f"/runs/{failed.pk}" in shown
    assert f"/runs/{again.pk}" not in shown


def test_what_was_never_judged_is_queued_and_has_no_score(problem: Problem, client: Client) -> None:
    submission = factory.make_submission()
    Submission.objects.filter(pk=submission.pk).update(trust="self-reported")
    factory.make_run(factory.make_kernel(submission, problem))
    address = f"/submissions/{submission.pk}"
    page = client.get(address).text
    assert '<span class="chip queued">queued</span>' in page
    assert client.get(f"{address}.json").json()["score"] is None
    without = factory.make_submission("Model Two")
    Submission.objects.filter(pk=without.pk).update(trust="self-reported")
    page = client.get(f"/submissions/{without.pk}").text
    assert '<span class="chip not-scored">not scored</span>' in page
    assert "pass@1" not in page
    assert "self-reported" not in page
    assert "of 1 problem" not in page


def test_a_share_of_a_model_stands_with_its_own_denominator(
    problem: Problem, client: Client
) -> None:
    factory.make_publication("Model One")
    beyond = factory.make_problem(2, "gather")
    Problem.objects.filter(pk=beyond.pk).update(ranked_from=8)  # factory runs have two ranks
    slug = factory.make_judged(factory.make_submission(), problem).kernel.submission.model.slug
    table = client.get(f"/models/{slug}").text.partition('id="categories"')[2]
    row = table.partition("<tbody>")[2].partition("</tr>")[0]
    shown = re.findall(r">([\d.]+)<span class=\"of\">/(\d+)</span>", row)
    assert shown == [("1", "1"), ("2", "17")]
    figure = client.get(f"/figures/model-categories.csv?model={slug}").text.splitlines()
    assert figure[1].split(",")[1:] == ["100.0", str(100 * (2 / 17))], figure
