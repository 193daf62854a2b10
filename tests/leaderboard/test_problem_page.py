"""A problem's page and the list of problems: best kernels, what stands in the way, floors."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from html import unescape
from typing import Any

import plotly.graph_objects as go
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evaluator.messages.profile import Evidence, Mechanism, Tag
from evaluator.messages.report import Verdict
from evaluator.messages.roofline_bounds import RooflineBounds
from leaderboard.models import DataVersion, Hardware, LanguageModel, Problem, Run, Submission
from leaderboard.read_model import problem_results
from tests.leaderboard import factory
from tests.leaderboard.timings import make_timing

pytestmark = [pytest.mark.django_db, pytest.mark.server]

GPU = {"hardware_id": "h200x4", "device": "cuda", "dtype": "bfloat16", "world_size": 4}
HOSTILE = "<script>alert(1)</script>\u202e"


def judged_on_gpus(submission: Submission, problem: Problem, speedup: float, **where: Any) -> Run:
    """A correct kernel with its floors and mechanisms; other sizes take the same source."""
    Hardware.objects.get_or_create(
        slug="h200x4", defaults={"title": "4 x NVIDIA H200", "device": "cuda", "max_world_size": 4}
    )
    kernel = submission.kernels.filter(problem=problem).first()
    source = f"{factory.SOURCE}# {submission.pk}\n"
    kernel = kernel or factory.make_kernel(submission, problem, source=source)
    run = factory.make_run(kernel, **{**GPU, "size": "standard", **where})
    report = factory.make_report(
        run,
        speedup=speedup,
        floors=RooflineBounds(wire_us=10.0, hbm_us=1.0, flops_us=0.5, latency_us=0.9),
        mechanisms=(Mechanism(tag=Tag.TMA, evidence=Evidence.SASS, detail="x"),),
    )
    return factory.finish(run, report)


@pytest.fixture
def fast(problem: Problem) -> Run:
    """The best kernel of a problem that three submissions tried on GPUs, one of them in vain."""
    judged_on_gpus(factory.make_submission("Slow"), problem, 0.8)
    failed = factory.make_run(
        factory.make_kernel(factory.make_submission(HOSTILE), problem), **GPU, size="standard"
    )
    factory.finish(failed, factory.make_report(failed, Verdict.TIMEOUT))
    secret = factory.make_submission("Secret", visibility="private")
    judged_on_gpus(secret, problem, 9.0)
    return judged_on_gpus(factory.make_submission("Fast", "agentic"), problem, 2.0)


def test_the_head_says_how_far_anybody_came(fast: Run, problem: Problem, client: Client) -> None:
    text = client.get(problem.get_absolute_url()).content.decode()
    for told in ("2.00×", "1.92 – 2.10", "1 faster than NCCL", "set by links"):
        assert told in text, told
    assert "20.0 %" in text  # 10 of 50 µs
    assert "Secret" not in text
    assert "9.00×" not in text
    assert "<script>alert" not in text
    assert text.index("Best kernels") < text.index('id="statement"')


def test_kernels_are_placed_and_tell_their_mechanisms(
    fast: Run, problem: Problem, client: Client
) -> None:
    found = client.get(f"{problem.get_absolute_url()}.json").json()
    assert [row["model"] for row in found["kernels"]] == ["Fast", "Slow"]
    first = found["kernels"][0]
    assert (first["utilisation"], first["limiter"]) == (pytest.approx(0.2), "wire")
    assert first["mechanisms"] == ["tma"]
    assert [row["verdict"] for row in found["attempts"]] == ["ok", "ok", "timeout"]
    assert (
        '<span class="chip">tma</span>' in client.get(problem.get_absolute_url()).content.decode()
    )


def test_all_attempts_are_a_link_and_a_table(
    fast: Run, problem: Problem, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leaderboard.problem_pages.problem.MOST_SHOWN", 1)
    text = client.get(problem.get_absolute_url()).content.decode()
    assert "attempts=all#attempts" in text
    assert "attempts=all#kernels" in text
    assert f'href="{problem.get_absolute_url()}.csv?attempts=all"' in text
    whole = client.get(f"{problem.get_absolute_url()}?attempts=all").content.decode()
    assert "attempts=all#attempts" not in whole
    assert "timeout" in whole
    rows = csv.DictReader(
        io.StringIO(client.get(f"{problem.get_absolute_url()}.csv?attempts=all").content.decode())
    )
    assert [row["verdict"] for row in rows] == ["ok", "ok", "timeout"]
    assert client.get(f"{problem.get_absolute_url()}?attempts=some").status_code == 400


def test_an_unscored_problem_shows_its_kernels(problem: Problem, client: Client) -> None:
    other = factory.make_problem(2, "gemm")
    factory.make_judged(factory.make_submission("Fast"), other)
    factory.make_judged(factory.make_submission("Fast"), problem)
    Problem.objects.filter(pk=other.pk).update(scored=False, unscored_reason="Too easy.")
    DataVersion.objects.bump()
    text = client.get(other.get_absolute_url()).content.decode()
    assert "Too easy." in text
    assert "Fast" in text


def test_a_setting_without_results_here_gives_way_to_one_with(
    problem: Problem, client: Client
) -> None:
    other = factory.make_problem(2, "gemm")
    for _ in range(2):
        factory.make_judged(factory.make_submission("On CPU"), other)
    judged_on_gpus(factory.make_submission("On GPU"), problem, 2.0)
    assert "On GPU" in client.get(problem.get_absolute_url()).content.decode()
    asked = client.get(f"{problem.get_absolute_url()}?hardware=cpu")
    assert asked.status_code == 200
    assert "On GPU" not in asked.text.partition('id="kernels"')[2]


def test_floors_name_what_binds_on_the_gpu_that_is_asked_for(
    problem: Problem, client: Client
) -> None:
    found = client.get(f"{problem.get_absolute_url()}.json").json()["floors"]
    assert found["gpu"] == "H200 SXM"
    tiny = next(row for row in found["rows"] if row["size"] == "tiny")
    assert (tiny["limiter"], tiny["bound_us"]) == ("latency", 0.9)
    other = client.get(f"{problem.get_absolute_url()}.json?gpu=b200-sxm").json()["floors"]
    assert other["gpu"] == "B200 SXM"
    assert [row["limiter"] for row in other["rows"]] == ["wire", "wire"]
    text = client.get(f"{problem.get_absolute_url()}?gpu=b200-sxm").content.decode()
    assert "that floor is not known" in text
    assert client.get(f"{problem.get_absolute_url()}?gpu=abacus").status_code == 400


def test_neighbours_are_linked(problem: Problem, client: Client) -> None:
    last = factory.make_problem(7, "gemm")
    for here, rel, there in ((problem, "next", last), (last, "prev", problem)):
        page = client.get(here.get_absolute_url()).content.decode()
        assert f'href="{there.get_absolute_url()}" rel="{rel}"' in page


def test_kernels_of_several_sizes_show_where_nccl_is_passed(
    problem: Problem, client: Client
) -> None:
    costs = {"wire_bytes": 8.0, "flops": 1.0, "hbm_bytes": 1.0, "exchanges": 1}
    problem.payload = {**problem.payload}
    problem.payload["costs"] = {
        "tiny": {"2": costs, "4": costs},
        "standard": {"2": costs, "4": {**costs, "wire_bytes": 800.0}},
    }
    problem.save()
    one = factory.make_submission("Sizes")
    for speedup, place in ((2.0, {"size": "tiny"}), (0.5, {}), (0.5, {"world_size": 2})):
        judged_on_gpus(one, problem, speedup, **place)
    where, figure = "ranks=4&size=standard", "/figures/speedup-by-size"
    text = client.get(f"{problem.get_absolute_url()}?{where}").content.decode()
    assert f"{figure}?problem=1&amp;ranks=4&amp;size=standard" in text
    drawn = client.get(f"{figure}?problem=1&{where}").content.decode()
    assert "faster than NCCL below about 80 B" in drawn
    assert "h200x4, 4 ranks, bfloat16, hardened inputs" in drawn
    spec = go.Figure(client.get(f"{figure}.json?problem=1&{where}").json())
    assert (spec.data[0].x, spec.data[0].y) == ((8.0, 800.0), (2.0, 0.5))
    assert [mark.text for mark in spec.layout.annotations] == ["as fast as NCCL at 80 B"]
    table = client.get("/figures/speedup-by-ranks.csv?problem=1&size=standard").content.decode()
    assert table.splitlines()[0].endswith("2 ranks,4 ranks")


@pytest.mark.parametrize("name", ["problem-failures", "speedup-by-size", "speedup-by-ranks"])
def test_a_figure_of_a_problem_is_served(
    name: str, fast: Run, problem: Problem, client: Client
) -> None:
    go.Figure(client.get(f"/figures/{name}.json?problem=1").json())
    assert client.get(f"/figures/{name}.csv?problem=1").status_code == 200
    for number in ("", "x", "999", "-1"):
        assert client.get(f"/figures/{name}.json?problem={number}").status_code == 404


OVERVIEW = ("roofline", "roofline-links", "speedups-by-problem", "failures-by-problem")


@pytest.mark.parametrize("name", OVERVIEW)
def test_a_figure_of_all_problems_is_served_under_the_filters_of_its_page(
    name: str, fast: Run, client: Client
) -> None:
    factory.make_problem(2, "gemm", "expert")
    with CaptureQueriesContext(connection) as asked:
        whole, rest = (
            client.get(f"/figures/{name}.json?category={c}") for c in ("tensor", "expert")
        )
    # Submissions are read only where they are drawn one by one.
    reads = any('FROM "leaderboard_leaderboardrow"' in query["sql"] for query in asked)
    assert reads == (name == "speedups-by-problem")
    assert go.Figure(whole.json()).data
    assert "Problem allreduce" in client.get(f"/figures/{name}.csv").content.decode()
    assert "allreduce" not in rest.content.decode()
    assert "Secret" not in client.get(f"/figures/{name}.csv").content.decode()


def numbers(client: Client, query: str) -> list[int]:
    return [row["number"] for row in client.get(f"/problems.json?{query}").json()["problems"]]


def test_the_list_is_filtered_and_sorted_by_its_address(
    fast: Run, problem: Problem, client: Client
) -> None:
    two = factory.make_problem(2, "gemm", "expert")
    three = factory.make_problem(3, "scan", "expert")
    two.payload = {**two.payload, "source": "else/where", "costs": {}}
    two.save()
    judged_on_gpus(factory.make_submission("Fast"), three, 4.0)
    assert numbers(client, "") == [1, 2, 3]
    assert numbers(client, "sort=-number") == [3, 2, 1]
    assert numbers(client, "sort=best_speedup") == [3, 1, 2]
    assert numbers(client, "sort=-best_speedup") == [1, 3, 2]
    assert numbers(client, "sort=solved") == [1, 3, 2]
    assert numbers(client, "sort=wire_bytes")[-1] == 2
    assert numbers(client, "category=expert") == [2, 3]
    assert numbers(client, "source=else/where") == [2]
    assert numbers(client, "solved=no") == [2]
    assert numbers(client, "solved=yes&category=expert") == [3]
    assert numbers(client, "scored=no") == []
    for bad in ("sort=x", "category=x", "solved=maybe", "source=x"):
        assert client.get(f"/problems?{bad}").status_code == 400
    assert "No problem is like that" in client.get("/problems?scored=no").content.decode()


def test_the_list_counts_within_one_setting(fast: Run, problem: Problem, client: Client) -> None:
    row = client.get("/problems.json").json()["problems"][0]
    assert (row["solved"], row["submissions"], row["best_speedup"]) == (2, 3, 2.0)
    assert row["utilisation"] == pytest.approx(0.2)


@pytest.mark.parametrize("address", ["/problems", "/problems/1-allreduce"])
def test_pages_need_few_queries_besides_the_version(
    address: str, fast: Run, client: Client
) -> None:
    with CaptureQueriesContext(connection) as queries:
        client.get(address)
    assert len([q for q in queries if "dataversion" not in q["sql"]]) <= 6


def test_failures_are_counted_by_mode(fast: Run, problem: Problem) -> None:
    (found,) = problem_results.totals_by_setting(problem)
    assert (found.made, found.correct, found.faster) == (3, 2, 1)
    assert found.modes == {"correct": 2, "deadlock": 1}
    assert found._replace(modes={"correct": 3}).commonest_failure is None


def test_the_reference_as_a_submission_stands_apart(
    fast: Run, problem: Problem, client: Client
) -> None:
    reference = factory.make_submission("PyTorch + NCCL")
    LanguageModel.objects.filter(pk=reference.model_id).update(is_baseline=True)
    judged_on_gpus(reference, problem, 5.0)
    found = client.get(f"{problem.get_absolute_url()}.json").json()
    assert [row["model"] for row in found["kernels"]] == ["Fast", "Slow"]
    text = client.get(problem.get_absolute_url()).content.decode()
    assert text.count('<tr class="baseline">') == 1
    assert "2<span" in text  # solved by two of three
    row = client.get("/problems.json").json()["problems"][0]
    assert (row["solved"], row["submissions"], row["best_speedup"]) == (2, 3, 2.0)


def test_a_site_with_references_alone_tells_how_far_they_are_from_the_bound(
    problem: Problem, client: Client
) -> None:
    reference = factory.make_submission("PyTorch + NCCL")
    LanguageModel.objects.filter(pk=reference.model_id).update(is_baseline=True)
    judged_on_gpus(reference, problem, 1.0)
    text = client.get(problem.get_absolute_url()).content.decode()
    assert "Reference, of the bound" in text
    assert "10.0 %" in text
    assert "Solved by" not in text
    assert "No kernel of a model has been judged" in text
    row = client.get("/problems.json").json()["problems"][0]
    assert (row["solved"], row["submissions"]) == (0, 0)
    # 2048 bytes in 100 us, and no kernel beside it.
    table = client.get("/figures/roofline-links.csv").content.decode().splitlines()
    assert table[1].endswith(",0.02048,")


def test_measured_times_stand_beside_the_floors(
    fast: Run, problem: Problem, client: Client
) -> None:
    text = client.get(problem.get_absolute_url()).content.decode()
    row = text[text.index('id="costs"') : text.index('id="baseline"')]
    assert "100 µs" in row  # the reference beside the fastest kernel, not 31.9 alone
    assert "50.0 µs" in row


def test_the_fastest_kernel_of_any_setting_stands_first(client: Client, problem: Problem) -> None:
    factory.make_judged(factory.make_submission("Slow"), problem, speedup=1.5)
    reference = factory.make_submission("Reference")
    LanguageModel.objects.filter(pk=reference.model_id).update(is_baseline=True)
    factory.make_judged(reference, problem, speedup=9.0)
    fast = factory.make_judged(factory.make_submission("Fast"), problem, speedup=3.0, world_size=4)
    page = unescape(client.get(problem.get_absolute_url()).text)
    shown = page[page.index('id="fastest"') : page.index('<dl class="facts">')]
    assert "<b>3.00×</b> on 4 ranks of cpu" in shown
    assert "<bdi>Fast</bdi>" in shown
    for address in ("kernel", "run"):
        assert f'href="/{address}s/' in shown
    assert f"/runs/{fast.pk}/bundle.zip" in shown
    assert f"python -m evaluator run {problem.slug} kernel.py --world-size 4" in shown
    assert page.index('id="statement"') < page.index('class="figures"')


def test_rows_stand_by_the_kernels_own_time(fast: Run, problem: Problem, client: Client) -> None:
    # The fastest of all, next to a reference that was fast as well.
    kernel = factory.make_kernel(factory.make_submission("Quick"), problem, source="# quick\n")
    run = factory.make_run(kernel, **GPU, size="standard")
    factory.finish(run, replace(factory.make_report(run), timing=make_timing(1.5, baseline=30.0)))
    found = client.get(f"{problem.get_absolute_url()}.json").json()
    for name in ("kernels", "attempts"):
        timed = [row for row in found[name] if row["kernel_us"] is not None]
        assert [row["model"] for row in timed] == ["Quick", "Fast", "Slow"]
        assert [row["kernel_us"] for row in timed] == sorted(row["kernel_us"] for row in timed)
        assert all(
            row["baseline_us"] / row["kernel_us"] == pytest.approx(row["speedup"]) for row in timed
        )
        assert timed[0]["speedup"] < timed[1]["speedup"]
    table = client.get(f"{problem.get_absolute_url()}.csv").content.decode()
    assert next(csv.DictReader(io.StringIO(table)))["model"] == "Quick"
    page = client.get(problem.get_absolute_url()).content.decode().partition("<tbody>")[2]
    assert page.index("20.0 µs</td>") < page.index("30.0 µs</td>") < page.index("1.50×")


def test_correct_attempts_come_first_where_nothing_is_timed(
    problem: Problem, client: Client
) -> None:
    for verdict in (Verdict.TIMEOUT, Verdict.OK, Verdict.TIMEOUT, Verdict.OK):
        factory.make_judged(factory.make_submission(), problem, verdict, placement="shared")
    found = client.get(f"{problem.get_absolute_url()}.json").json()["attempts"]
    assert [row["verdict"] for row in found] == ["ok", "ok", "timeout", "timeout"]


def test_where_nobody_was_judged_the_page_leads_to_where_somebody_was(client: Client) -> None:
    problem = factory.make_problem()
    reference = factory.make_submission("PyTorch + NCCL")
    LanguageModel.objects.filter(pk=reference.model_id).update(is_baseline=True)
    factory.make_judged(reference, problem)
    factory.make_judged(factory.make_submission(), problem, placement="shared")
    page = client.get(problem.get_absolute_url()).content.decode()
    assert "No kernel of a model has been judged in this setting. <a href=" in page
    assert "1 of 1 submission solves it elsewhere</a>: cpu, 2 ranks" in page
    (address,) = [
        part.partition('"')[0] for part in page.split('href="') if "solves it elsewhere" in part
    ]
    other = client.get(unescape(address)).content.decode()
    assert "No kernel of a model" not in other
    assert "elsewhere</a>" not in other


def test_what_nobody_solved_anywhere_leads_nowhere(client: Client) -> None:
    problem = factory.make_problem()
    one = factory.make_submission()
    factory.make_judged(one, problem, Verdict.TIMEOUT)
    factory.make_judged(one, problem, Verdict.TIMEOUT, placement="shared")
    assert "elsewhere</a>" not in client.get(problem.get_absolute_url()).content.decode()
