"""How a speedup changes with the number of ranks, over the classes of hardware with one GPU."""

from __future__ import annotations

import csv
import io

import plotly.graph_objects as go
import pytest
from django.test import Client

from leaderboard.models import Hardware, Problem, Run
from tests.leaderboard import factory

pytestmark = pytest.mark.django_db

FIGURE = "/figures/speedup-by-ranks"
TWO, FOUR = "h200x2", "h200x4"


def judged(model: str, problem: Problem, gpus: str, speedup: float, mark: str = "") -> Run:
    """The same source unless marked, in a submission of its own, on all GPUs of a class."""
    name, count = gpus.split("x")
    Hardware.objects.get_or_create(
        slug=gpus,
        defaults={
            "title": f"{count} x NVIDIA {name.upper()}",
            "device": "cuda",
            "max_world_size": int(count),
        },
    )
    source = f"{factory.SOURCE}# {model} {mark}\n"
    kernel = factory.make_kernel(factory.make_submission(model), problem, source=source)
    where = {"hardware_id": gpus, "device": "cuda", "dtype": "bfloat16", "world_size": int(count)}
    run = factory.make_run(kernel, **where, size="standard")
    return factory.finish(run, factory.make_report(run, speedup=speedup))


def lines_of(client: Client, query: str) -> dict[str, list[tuple[float, float]]]:
    drawn = go.Figure(client.get(f"{FIGURE}.json?{query}").json())
    return {line.name: list(zip(line.x, line.y, strict=True)) for line in drawn.data}


def test_one_kernel_is_a_line_over_the_classes_of_one_gpu(problem: Problem, client: Client) -> None:
    first = judged("Hand", problem, TWO, 2.0)
    judged("Hand", problem, FOUR, 0.5)
    judged("Hand", problem, FOUR, 0.7)
    judged("Hand", problem, TWO, 3.0, mark="another source")
    judged("Else", problem, TWO, 1.5)
    judged("Hand", problem, "b200x8", 9.0)
    page = client.get(f"{problem.get_absolute_url()}?hardware={TWO}").content.decode()
    assert f"{FIGURE}?problem=1&amp;hardware={TWO}" in page
    query = f"problem=1&hardware={TWO}"
    name = f"Hand (zero-shot, {first.kernel.source_id[:10]})"
    best = [(2.0, 3.0), (4.0, 0.6)]
    assert lines_of(client, query) == {name: [(2.0, 2.0), (4.0, 0.6)], "best of all": best}
    assert lines_of(client, f"problem=1&hardware={FOUR}") == lines_of(client, query)
    rows = list(csv.reader(io.StringIO(client.get(f"{FIGURE}.csv?{query}").content.decode())))
    assert rows[:2] == [["Speedup × of", "2 ranks", "4 ranks"], [name, "2.0", "0.6"]]
    told = client.get(f"{FIGURE}?{query}").content.decode()
    assert "faster than NCCL on 2 ranks and slower on 4." in told
    assert "also where it was handed in more than once" in told
    assert "NVIDIA H200, standard, bfloat16" in told


def test_a_gpu_with_one_number_of_ranks_has_no_such_figure(
    problem: Problem, client: Client
) -> None:
    judged("Hand", problem, TWO, 2.0)
    judged("Hand", problem, "b200x4", 2.0)
    assert FIGURE not in client.get(f"{problem.get_absolute_url()}?hardware={TWO}").content.decode()


def test_a_kernel_handed_in_twice_names_both_submissions(problem: Problem, client: Client) -> None:
    runs = [judged("Hand", problem, gpus, 2.0) for gpus in (TWO, FOUR)]
    page = client.get(f"/kernels/{runs[0].kernel.source_id}").content.decode()
    for run in runs:
        assert f'submission {run.kernel.submission_id}, <a href="/submissions/' in page
