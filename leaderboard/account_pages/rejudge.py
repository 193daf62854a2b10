"""Serves the page on which staff have results judged again."""

from __future__ import annotations

from collections import Counter

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from leaderboard.kit.permissions import JUDGE_AGAIN, staff_page
from leaderboard.kit.request_error import RequestError
from leaderboard.models.choices import CURRENT_JUDGE
from leaderboard.submissions import rejudging
from leaderboard.submissions.rejudging import Plan

ALL = "all"
WORDS = ("problem", "submission", "which", "wait")


@staff_page(JUDGE_AGAIN)
@require_http_methods(["GET", "POST"])
def rejudge(request: HttpRequest) -> HttpResponse:
    """Show what would be judged again, or queue it."""
    assert request.user.is_authenticated
    asked = request.POST if request.method == "POST" else request.GET
    words = {name: asked.get(name, "").strip().replace("\0", "") for name in WORDS}
    try:
        chosen = rejudging.selection(
            stale=words["which"] != ALL,
            problem=words["problem"],
            submission=words["submission"],
            waits=bool(words["wait"]),
        )
    except RequestError as error:
        context = {**words, **_plan_context("", Plan()), "error": error, "is_done": False}
        return render(request, "rejudge.html", context, status=error.status)
    is_done = request.method == "POST"
    plan = rejudging.rejudge(chosen, request.user) if is_done else rejudging.planned(chosen)
    context = {**words, **_plan_context(str(chosen), plan), "error": None, "is_done": is_done}
    return render(request, "rejudge.html", context)


def _plan_context(said: str, plan: Plan) -> dict[str, object]:
    ready = Counter((str(kernel.problem), target.hardware) for kernel, target in plan.ready)
    return {
        "judge": CURRENT_JUDGE,
        "said": said,
        "runs": len(plan.ready),
        "ready": [{"problem": p, "hardware": h, "runs": n} for (p, h), n in ready.items()],
        "left_out": [
            {"why": why, "runs": len(numbers), "problems": sorted(set(numbers))}
            for why, numbers in plan.left_out.items()
        ],
    }
