"""Addresses of the site. A page of data has twins at the same path: `.json`, of a table `.csv`."""

from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import URLPattern, include, path

from leaderboard.pages import View
from leaderboard.views import (
    about,
    account,
    badges,
    board,
    bundles,
    categories,
    category,
    compare,
    edit,
    feeds,
    figures,
    hardware,
    kernels,
    language_models,
    maps,
    matrix,
    moved,
    problems,
    runs,
    search,
    snapshots,
    submissions,
    submit,
)


def twins(route: str, view: View, name: str, *, stem: str = "") -> list[URLPattern]:
    """`stem` is where the twins of the front page live, whose own path is empty."""
    made = [path(route, view, name=name)]
    for form in ("json", "csv"):
        made.append(path(f"{stem or route}.{form}", view, {"form": form}, name=f"{name}-{form}"))
    return made


urlpatterns = [
    path("api/v1/", include("leaderboard.api.urls")),
    path("admin/", admin.site.urls),
    *twins("", board.board, "board", stem="leaderboard"),
    *twins("categories", categories.categories, "categories"),
    *twins("categories/<slug:slug>", category.category, "category"),
    *twins("problems", problems.problems, "problems"),
    path("problems/<int:number>", problems.problem_by_number, name="problem-number"),
    *twins("problems/<int:number>-<slug:slug>", moved.problem_page, "problem"),
    *twins("kernels/<slug:digest>", kernels.kernel, "kernel"),
    path("kernels/<slug:digest>/bundle.zip", bundles.of_kernel, name="kernel-bundle"),
    *twins("runs/<uuid:run_id>", runs.run, "run"),
    path("runs/<uuid:run_id>/bundle.zip", bundles.of_run, name="run-bundle"),
    *twins("submissions/<int:number>", submissions.submission, "submission"),
    path("submissions/<int:number>/edit", edit.edit, name="edit-submission"),
    *twins("models/<slug:slug>", language_models.model, "model"),
    *twins("hardware", hardware.hardware_list, "hardware-list"),
    *twins("hardware/<slug:slug>", hardware.hardware, "hardware"),
    *twins("methodology", about.methodology, "methodology"),
    *twins("status", about.status, "status"),
    *twins("figures/<slug:name>", figures.answer, "figure"),
    *twins("matrix", matrix.models_by_problems, "matrix"),
    path("matrix/<int:submission>", matrix.row, name="matrix-row"),
    path("matrix/<int:submission>/<int:problem>", matrix.attempt, name="attempt"),
    *twins("compare", compare.compare, "compare"),
    *twins("search", search.search, "search"),
    path("opensearch.xml", search.opensearch, name="opensearch"),
    path("feed.atom", feeds.feed, name="feed"),
    path("badges/models/<slug:slug>.svg", badges.model, name="model-badge"),
    path("badges/submissions/<int:number>.svg", badges.submission, name="submission-badge"),
    path("sitemap.xml", maps.sitemap, name="sitemap"),
    path("robots.txt", maps.robots, name="robots"),
    *twins("snapshots", snapshots.listed, "snapshots"),
    *twins("snapshots/<slug:tag>", snapshots.snapshot, "snapshot"),
    path("snapshots/<slug:tag>/<str:name>", snapshots.file, name="snapshot-file"),
    path("submit", submit.submit, name="submit"),
    path("account", account.account, name="account"),
    path("account/tokens/<int:number>/revoke", account.revoke_token, name="revoke_token"),
    path("account/login", LoginView.as_view(extra_context={"section": "account"}), name="login"),
    path("account/logout", LogoutView.as_view(), name="logout"),
    path("<path:way>/", moved.without_slash),
]
handler500 = "leaderboard.api.errors.server_error"
