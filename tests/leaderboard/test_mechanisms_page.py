"""The mechanisms of right kernels: how often, how fast, in which categories, by whom."""

from __future__ import annotations

import pytest
from django.test import Client

from evaluator.messages.profile import Evidence, Mechanism, Tag
from evaluator.messages.report import Verdict
from leaderboard.models import Submission
from tests.leaderboard import factory
from tests.leaderboard.test_page_budgets import FEW_QUERIES, queries_of

pytestmark = pytest.mark.django_db


def judge(
    submission: Submission,
    number: int,
    *tags: Tag,
    speedup: float = 1.3,
    is_right: bool = True,
    placement: str = "full",
) -> None:
    problem = factory.make_problem(
        number, f"problem_{number}", "expert" if number > 2 else "tensor"
    )
    source = f"{factory.SOURCE}# {submission.pk} {number}\n"
    kernel = factory.make_kernel(submission, problem, source=source)
    run = factory.make_run(kernel, placement=placement)
    used = tuple(Mechanism(tag=tag, evidence=Evidence.TRACE, detail="") for tag in tags)
    verdict = Verdict.OK if is_right else Verdict.OUTPUT_MISMATCH
    factory.finish(run, factory.make_report(run, verdict, speedup, mechanisms=used))


@pytest.fixture
def site() -> None:
    one, two = factory.make_submission("Model One"), factory.make_submission("Model Two")
    judge(one, 1, Tag.NCCL, speedup=0.5)
    judge(one, 2, Tag.SIGNAL_PADS, Tag.TMA, speedup=2.0)
    judge(one, 3, Tag.SIGNAL_PADS, is_right=False)
    judge(two, 3, Tag.SIGNAL_PADS, speedup=4.0)
    judge(two, 4)


@pytest.mark.usefixtures("site")
def test_the_page_counts_right_kernels_by_what_they_use(client: Client) -> None:
    page = client.get("/mechanisms").content.decode()
    assert "4 correct kernels" in page
    assert "Of 1 no mechanism was recognised." in page
    _, row = page.split('/matrix?mechanism=signal_pads">signal pads</a></th>', 1)
    signal_pads = row.partition("</tr>")[0]
    assert ">2</td>" in signal_pads
    assert ">3.00×</td>" in signal_pads  # the median of 2 and 4
    assert page.index(">signal pads</a></th>") < page.index(">NCCL</a></th>")  # the commonest first
    assert "/matrix?category=expert&amp;mechanism=signal_pads" in page
    assert "category=expert&amp;mechanism=tma" not in page.replace(">0</span>", "")


def test_the_figure_compares_kernels_with_and_without_nccl(client: Client) -> None:
    one = factory.make_submission("Model One")
    for number, speedup in enumerate((0.5, 0.6, 0.7), 1):
        judge(one, number, Tag.NCCL, Tag.SYMMETRIC_MEMORY, speedup=speedup)
    for number, speedup in enumerate((2.0, 3.0, 4.0), 4):
        judge(one, number, Tag.SYMMETRIC_MEMORY, speedup=speedup)
    page = client.get("/mechanisms").content.decode()
    assert "<h1>Kernels that call NCCL reach 0.600×, those that do not 3.00×</h1>" in page
    assert page.count('data-name="mechanism-speedups"') == 1
    rows = client.get("/figures/mechanism-speedups.csv").content.decode().splitlines()[1:]
    assert [row.split(",")[:2] for row in rows] == [
        *(["no NCCL", "3"], ["symmetric memory", "6"], ["NCCL", "3"]),
    ]
    nccl = page[page.index(">NCCL</a></th>") :].partition("</tr>")[0]
    assert "0.700× on problem 3" in nccl


@pytest.mark.usefixtures("site")
def test_few_kernels_are_no_figure(client: Client) -> None:
    assert "data-figure" not in client.get("/mechanisms").content.decode()


def test_where_ranks_share_a_gpu_the_share_of_nccl_is_not_told(client: Client) -> None:
    submission = factory.make_submission()
    judge(submission, 1, Tag.NCCL, placement="shared")
    judge(submission, 2, Tag.TMA, placement="shared")
    page = client.get("/mechanisms").content.decode()
    assert "NCCL is not told here" in page
    assert "Some sources name it (1 of 2)" in page
    assert ">TMA</a></th>" in page
    assert ">NCCL</a></th>" not in page
    assert "mechanism=nccl" not in page
    board = client.get("/").content.decode()
    assert '<option value="nccl">nccl, by the source alone</option>' in board
    assert '<option value="no">No NCCL in the source</option>' in board


@pytest.mark.usefixtures("site")
def test_with_a_gpu_a_rank_nccl_is_told(client: Client) -> None:
    page = client.get("/mechanisms").content.decode()
    assert "NCCL is not told here" not in page
    board = client.get("/").content.decode()
    assert '<option value="nccl">nccl</option>' in board
    assert '<option value="no">No NCCL calls</option>' in board


@pytest.mark.usefixtures("site")
def test_a_number_leads_to_its_kernels(client: Client) -> None:
    rows = client.get("/matrix.json?category=expert&mechanism=signal_pads").json()["cells"]
    assert [(row["problem"], row["correct"]) for row in rows if row["correct"]] == [(3, 1)]


@pytest.mark.usefixtures("site")
def test_the_twins_list_every_right_kernel(client: Client) -> None:
    kernels = client.get("/mechanisms.json").json()["kernels"]
    assert [(one["problem"], one["mechanisms"]) for one in kernels] == [
        *((1, "nccl"), (2, "signal_pads tma")),
        *((3, "signal_pads"), (4, "")),
    ]
    assert len(client.get("/mechanisms.csv").content.decode().splitlines()) == 5


@pytest.mark.usefixtures("site")
def test_the_page_takes_few_queries(client: Client) -> None:
    assert queries_of("/mechanisms", client) <= FEW_QUERIES


def test_without_right_kernels_the_page_says_so(client: Client) -> None:
    assert "No correct kernel has a known mechanism" in client.get("/mechanisms").content.decode()
