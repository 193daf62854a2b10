"""The settings that a submission was judged in, and which of them pages show."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from leaderboard.models import (
    Hardware,
    Kernel,
    Problem,
    ProblemAggregate,
    Run,
    Source,
    Submission,
)
from leaderboard.read_model.boards import known_settings
from tests.leaderboard import factory

pytestmark = pytest.mark.django_db


@pytest.fixture
def twice(problem: Problem) -> Submission:
    """Two problems at `large`, one of them at `standard` too, where boards begin."""
    other = factory.make_problem(2, "gemm")
    made = factory.make_submission("Twice")
    for number, speedup in ((problem, 2.0), (other, 2.0)):
        judged_at(factory.make_kernel(made, number, source=f"{number.pk}"), "large", speedup)
    judged_at(made.kernels.get(problem=problem), "standard", 0.5)
    crowd = factory.make_submission("Crowd")
    judged_at(factory.make_kernel(crowd, problem, source="crowd"), "large", 1.5)
    for name in (problem, other):
        kernel = factory.make_kernel(crowd, name, source=f"{name.pk} crowd", attempt=2)
        judged_at(kernel, "standard", 1.5)
    return made


def judged_at(kernel: Kernel, size: str, speedup: float) -> Run:
    run = factory.make_run(kernel, size=size)
    return factory.finish(run, factory.make_report(run, speedup=speedup))


def test_a_submission_is_shown_in_the_setting_asked_for(twice: Submission, client: Client) -> None:
    address = f"/submissions/{twice.pk}"
    usual = client.get(f"{address}.json").json()
    assert (usual["setting"]["size"], usual["score"]["correct"]) == ("standard", 1)
    asked = client.get(f"{address}.json?size=large").json()
    assert (asked["setting"]["size"], asked["score"]["correct"]) == ("large", 2)
    nothing = client.get(f"{address}.json?size=large&ranks=64").json()
    assert nothing["setting"]["size"] == "standard"
    page = client.get(f"{address}?size=large").content.decode()
    assert "Settings: <b>cpu, 2 ranks, large" in page
    assert 'href="?hardware=cpu&amp;ranks=2&amp;size=standard&amp;' in page
    assert 'href="?verdict=ok&amp;size=large#kernels"' in page
    assert f"/figures/speedups.json?submission={twice.pk}&amp;size=large" in page
    figure = f"/figures/speedups.csv?submission={twice.pk}"
    assert len(client.get(f"{figure}&size=large").content.splitlines()) == 3
    assert "0.5," in client.get(figure).content.decode()


@pytest.mark.parametrize(
    "page", ["/", "/matrix", "/categories/tensor", "/compare?a={0}&b={1}", "/problems/1-allreduce"]
)
def test_a_row_leads_to_a_submission_in_its_own_setting(
    page: str, twice: Submission, client: Client
) -> None:
    address = page.format(twice.pk, twice.pk + 1)
    at_large = client.get(f"{address}{'&' if '?' in address else '?'}size=large").content.decode()
    link = next(iter(re.findall(rf'href="(/submissions/{twice.pk}\?[^"]*)"', at_large)))
    assert client.get(link.replace("&amp;", "&")).content.decode().count("2.00×") > 1
    assert f'href="/submissions/{twice.pk}"' in client.get(address).content.decode()


def test_without_results_where_boards_begin_most_problems_decide(
    twice: Submission, client: Client
) -> None:
    alone = factory.make_submission("Alone")
    for size, numbers in (("small", (1,)), ("large", (1, 2))):
        for number in numbers:
            kernel, _ = alone.kernels.get_or_create(
                problem_id=number,
                defaults={"backend": "pytorch", "source": Source.objects.keep(f"a{number}")[0]},
            )
            judged_at(kernel, size, 1.0)
    found = client.get(f"/submissions/{alone.pk}.json").json()
    assert found["setting"]["size"] == "large"


def test_a_models_page_names_each_row_and_its_setting(twice: Submission, client: Client) -> None:
    page = client.get(f"/models/{twice.model.slug}").content.decode()
    found = re.findall(r'href="(/submissions/[^"]*)">([^<]*)</a><small>([^<]*)<', page)
    ((address, named, setting),) = found
    assert named == f"zero-shot, no. {twice.pk}"
    assert setting.startswith("cpu, 2 ranks, standard, ")
    told = client.get(address.replace("&amp;", "&").replace("?", ".json?")).json()
    assert (told["setting"]["size"], told["score"]["correct"]) == ("standard", 1)


def test_where_far_more_was_judged_elsewhere_that_is_shown(
    twice: Submission, client: Client
) -> None:
    kernel = factory.make_kernel(twice, factory.make_problem(3, "scatter"), source="third")
    judged_at(kernel, "large", 2.0)
    told = client.get(f"/submissions/{twice.pk}.json").json()
    assert (told["setting"]["size"], told["score"]["correct"]) == ("large", 3)
    (own,) = client.get(f"/models/{twice.model.slug}.json").json()["settings"]
    assert own["size"] == "large"


def test_a_comparison_leads_to_problems_in_its_setting(twice: Submission, client: Client) -> None:
    crowd = Submission.objects.get(model__name="Crowd")
    address = f"/compare?a={twice.pk}&b={crowd.pk}"
    problem = "/problems/1-allreduce"
    assert f'href="{problem}"' in client.get(address).text
    assert f'href="{problem}?hardware=cpu&amp;ranks=2&amp;size=large&' in (
        client.get(f"{address}&size=large").text
    )


def test_best_and_worst_problems_of_a_model_are_of_one_setting(
    twice: Submission, client: Client
) -> None:
    elsewhere = factory.make_submission("Twice")
    gemm = Problem.objects.get(slug="gemm")
    judged_at(factory.make_kernel(elsewhere, gemm, source="elsewhere"), "small", 7.0)
    page = client.get(f"/models/{twice.model.slug}").content.decode()
    best = page[page.index('id="best"') : page.index('id="categories"')]
    assert "of any submission. cpu, 2 ranks, standard, float32" in best
    assert re.findall(r'href="/problems/([^"?]*)\?[^"]*size=standard', best) == ["1-allreduce"]
    assert "0.500×" in best
    assert "7.00×" not in best
    assert "Solved 2 of 2 problems" in page
    assert "/compare?" not in page
    assert page.count("each in one setting, as the table of the model says") == 4
    told = client.get(f"/models/{twice.model.slug}.json").json()["settings"]
    assert [(one["submission"], one["size"]) for one in told] == [
        (twice.pk, "standard"),
        (elsewhere.pk, "small"),
    ]


def test_without_one_where_boards_begin_the_setting_of_most_problems_is_told(
    twice: Submission, client: Client
) -> None:
    alone = factory.make_submission("Alone")
    for number, problem in enumerate(Problem.objects.all()):
        judged_at(factory.make_kernel(alone, problem, source=f"{number}"), "large", 2.0)
    other = factory.make_submission("Alone")
    judged_at(factory.make_kernel(other, Problem.objects.get(pk=1), source="x"), "small", 3.0)
    page = client.get(f"/models/{alone.model.slug}").content.decode()
    assert "of any submission. cpu, 2 ranks, large, float32" in page


def test_submissions_of_a_model_are_compared_in_a_setting_that_they_share(
    twice: Submission, problem: Problem, client: Client
) -> None:
    again, elsewhere = factory.make_submission("Twice"), factory.make_submission("Twice")
    judged_at(factory.make_kernel(again, problem, source="again"), "standard", 2.0)
    judged_at(factory.make_kernel(elsewhere, problem, source="elsewhere"), "small", 7.0)
    page = client.get(f"/models/{twice.model.slug}").content.decode()
    ((address, text),) = re.findall(r'href="(/compare\?[^"]*)">([^<]*)<', page)
    assert address.startswith(f"/compare?a={again.pk}&amp;b={twice.pk}&amp;hardware=cpu")
    assert "cpu, 2 ranks, standard" in text
    found = client.get(address.replace("&amp;", "&")).content.decode()
    assert "Not judged in this setting" not in found


def test_of_settings_that_are_used_as_much_the_newest_judges_is_first(problem: Problem) -> None:
    counts = dict.fromkeys(("solved", "made", "correct", "faster", "baseline_runs"), 0)
    where = {name: factory.SETTING[name] for name in ("world_size", "size", "dtype", "profile")}
    Hardware.objects.get_or_create(slug="cpu")
    for judge, submissions in (("3", 1), ("10", 1), ("9", 1), ("11", 0)):
        ProblemAggregate.objects.create(
            **{**where, **counts, "hardware_id": "cpu", "problem": problem, "modes": {}},
            judge_version=judge,
            submissions=submissions,
        )
    assert [one.judge_version for one in known_settings()] == ["10", "9", "3", "11"]


def test_a_board_begins_with_gpus_however_few_were_judged_there(
    twice: Submission, client: Client
) -> None:
    Hardware.objects.create(slug="h200x4", title="4 x H200", device="cuda", max_world_size=4)
    run = factory.make_run(twice.kernels.earliest("pk"), hardware_id="h200x4", world_size=4)
    factory.finish(run, factory.make_report(run))
    assert [one.hardware_id for one in known_settings()] == ["h200x4", "cpu", "cpu"]
    assert client.get("/leaderboard.json").json()["setting"]["hardware_id"] == "h200x4"
