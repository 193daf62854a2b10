"""Figures of one submission."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import Http404, HttpRequest

from leaderboard.charts import submissions as charts
from leaderboard.charts.submissions import Speedup
from leaderboard.models import Run, Submission
from leaderboard.pages import Page, Table, public_page
from leaderboard.views.figures.frame import figure_page


@public_page("submission")
def speedups(request: HttpRequest) -> Page:
    number = request.GET.get("submission", "")
    if not (number.isascii() and number.isdigit() and len(number) < 15):
        raise Http404
    submission = Submission.objects.filter(pk=int(number)).first()
    if submission is None:
        raise Http404
    found = speedups_of(submission)
    return figure_page(charts.speedups(found), speedup_table(found), submission)


def speedup_table(found: Sequence[Speedup]) -> Table:
    columns = ("Problem", "Speedup, ×", "95 % low", "95 % high")
    return Table(columns=columns, rows=[[s.name, s.speedup, s.low, s.high] for s in found])


def speedups_of(submission: Submission) -> list[Speedup]:
    """Every correct kernel whose run counts, newest run of each."""
    runs = (
        Run.objects.counted()
        .filter(kernel__submission=submission, verdict="ok")
        .order_by("created_at", "id")
        .values_list(
            "kernel_id", "kernel__problem__title", "speedup", "speedup_low", "speedup_high"
        )
    )
    newest = {
        kernel: Speedup(name=title, speedup=speedup, low=low, high=high)
        for kernel, title, speedup, low, high in runs
        if speedup is not None and low is not None and high is not None
    }
    return list(newest.values())
