"""Lists the addresses of the site. A page of data has twins: `.json`, and of a table `.csv`."""

from collections.abc import Mapping

from allauth.account.decorators import secure_admin_login
from django.contrib import admin
from django.http import Http404, HttpRequest, HttpResponseBase
from django.urls import URLPattern, include, path

from leaderboard.account_pages import cancel, edit, notices, own, rejudge, submit, teams
from leaderboard.account_pages import urls as account_urls
from leaderboard.board_pages import (
    beats_nccl,
    board,
    board_figures,
    catalogue_figures,
    categories,
    category,
    category_figures,
    cost_figures,
    matrix,
    mechanism_kernels,
    mechanisms,
    profile_reasons,
    profiles,
)
from leaderboard.delivery import client_archive, redirects
from leaderboard.delivery.pages import View
from leaderboard.figures.frame import Figure
from leaderboard.model_pages import (
    attempt,
    compare,
    model,
    model_figures,
    submission,
    submission_figures,
    team,
)
from leaderboard.problem_pages import (
    claimed_curves,
    overview_figures,
    problem,
    problem_figures,
    problems,
    records,
    screenings,
)
from leaderboard.publishing import badges, feed, snapshot_pages
from leaderboard.run_pages import bundles, kernel, run, run_figures, trace
from leaderboard.site_pages import (
    about,
    attacks,
    environment,
    hardware,
    hardware_figures,
    plain_texts,
    search,
    site_map,
)
from leaderboard.staff import accounts, audit, complaints, hosts, moderate

FIGURES: Mapping[str, Figure] = {
    one.name: one
    for one in (
        board_figures.fast_p,
        board_figures.chances,
        board_figures.spreads,
        board_figures.utilisations,
        board_figures.failure_modes,
        cost_figures.cost_fast,
        cost_figures.tokens_solved,
        category_figures.heat_map,
        catalogue_figures.problem_map,
        catalogue_figures.sources,
        profiles.both_profiles,
        mechanism_kernels.mechanism_speedups,
        profile_reasons.hidden_failures,
        beats_nccl.house_speedups,
        hardware_figures.limits,
        overview_figures.links,
        overview_figures.arithmetic,
        overview_figures.spreads,
        overview_figures.failures,
        problem_figures.failures,
        claimed_curves.published_speedups,
        records.best_over_time,
        problem_figures.by_size,
        problem_figures.by_ranks,
        run_figures.bursts,
        run_figures.last_rank,
        run_figures.burst_histogram,
        run_figures.margins,
        run_figures.timeline,
        submission_figures.progress,
        submission_figures.by_step,
        submission_figures.failures,
        submission_figures.speedups,
        model_figures.by_category,
        model_figures.fast_p,
        model_figures.failures,
        model_figures.speedups,
    )
}


def figure_page(request: HttpRequest, name: str, form: str = "html") -> HttpResponseBase:
    """Serve the page of a figure with its data; raise Http404 where no figure has this name."""
    if name not in FIGURES:
        raise Http404
    return FIGURES[name].view(request, form=form)


def twins(route: str, view: View, name: str, *, stem: str = "") -> list[URLPattern]:
    """Return a page's routes; `stem` is where the front page, whose path is empty, has twins."""
    made = [path(route, view, name=name)]
    for form in ("json", "csv"):
        made.append(path(f"{stem or route}.{form}", view, {"form": form}, name=f"{name}-{form}"))
    return made


def card(route: str, view: View, name: str) -> URLPattern:
    """Return the route of the picture that other sites show beside a link to a page."""
    return path(f"{route}.png", view, {"form": "png"}, name=f"{name}-card")


# Whoever the admin lets in has logged in as everybody does: counted, and with the second factor.
admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]

urlpatterns = [
    path("api/v1/", include("leaderboard.api.urls")),
    path("admin/", admin.site.urls),
    *twins("", board.board, "board", stem="leaderboard"),
    *twins("categories", categories.categories, "categories"),
    *twins("categories/<slug:slug>", category.category, "category"),
    *twins("problems", problems.problems, "problems"),
    *twins("problems/health", screenings.screenings, "screenings"),
    path("problems/<int:number>", problem.problem_number, name="problem-number"),
    *twins("problems/<int:number>-<slug:slug>", problem.problem_page, "problem"),
    *twins("kernels/<slug:digest>", kernel.kernel, "kernel"),
    path("kernels/<slug:digest>/bundle.zip", bundles.of_kernel, name="kernel-bundle"),
    *twins("runs/<uuid:run_id>", run.run, "run"),
    path("runs/<uuid:run_id>/cancel", cancel.cancel, name="cancel-run"),
    path("runs/<uuid:run_id>/cancel.json", cancel.may_cancel, name="may-cancel-run"),
    path("runs/<uuid:run_id>/bundle.zip", bundles.of_run, name="run-bundle"),
    path("runs/<uuid:run_id>/trace.json", trace.of_run, name="run-trace"),
    *twins("submissions/<submission:address>", submission.submission, "submission"),
    path("submissions/<int:number>/edit", edit.edit, name="edit-submission"),
    path("submissions/<int:number>/withdraw", own.withdraw, name="withdraw-submission"),
    path("submissions/<int:number>/rerun", own.rerun, name="rerun-submission"),
    *twins(
        "submissions/<submission:address>/<int:problem>/attempt-<int:attempt>",
        attempt.attempt,
        "submission-attempt",
    ),
    *twins("models/<slug:slug>", model.model_page, "model"),
    *twins("teams/<slug:slug>", team.team, "team"),
    *twins("environment", environment.environment, "environment"),
    *twins("hardware", hardware.hardware_list, "hardware-list"),
    *twins("hardware/<slug:slug>", hardware.hardware, "hardware"),
    *twins("methodology", about.methodology, "methodology"),
    *twins("attacks", attacks.attacks, "attacks"),
    *twins("status", about.status, "status"),
    *twins("figures/<slug:name>", figure_page, "figure"),
    *twins("matrix", matrix.models_by_problems, "matrix"),
    path("matrix/<int:submission>", matrix.row, name="matrix-row"),
    path("matrix/<int:submission>/<int:problem>", matrix.attempt, name="attempt"),
    *twins("mechanisms", mechanisms.mechanisms, "mechanisms"),
    card("leaderboard", board.board, "board"),
    card("mechanisms", mechanisms.mechanisms, "mechanisms"),
    card("profiles", profiles.profiles, "profiles"),
    card("beats-nccl", beats_nccl.beats_nccl, "beats-nccl"),
    card("problems/<int:number>-<slug:slug>", problem.problem_page, "problem"),
    *twins("profiles", profiles.profiles, "profiles"),
    *twins("beats-nccl", beats_nccl.beats_nccl, "beats-nccl"),
    path("house-kernels", beats_nccl.moved),
    path("house-kernels.json", beats_nccl.moved, {"form": "json"}),
    *twins("compare", compare.compare, "compare"),
    *twins("search", search.search, "search"),
    path("opensearch.xml", search.opensearch, name="opensearch"),
    path("feed.atom", feed.feed, name="feed"),
    path("badges/models/<slug:slug>.svg", badges.model, name="model-badge"),
    path("badges/submissions/<int:number>.svg", badges.submission, name="submission-badge"),
    path("sitemap.xml", site_map.sitemap, name="sitemap"),
    path("llms.txt", plain_texts.llms, name="llms"),
    path("docs/<slug:name>.md", plain_texts.doc, name="doc"),
    path("problems/<int:number>-<slug:slug>.md", plain_texts.statement, name="statement"),
    path("robots.txt", site_map.robots, name="robots"),
    *twins("snapshots", snapshot_pages.listed, "snapshots"),
    *twins("snapshots/<slug:tag>", snapshot_pages.snapshot, "snapshot"),
    path("snapshots/<slug:tag>/<str:name>", snapshot_pages.file, name="snapshot-file"),
    path("rejudge", rejudge.rejudge, name="rejudge"),
    path("hosts", hosts.hosts, name="hosts"),
    path("bans", accounts.bans, name="bans"),
    path("audit", audit.audit, name="audit"),
    path("audit.csv", audit.audit, {"form": "csv"}, name="audit-csv"),
    path("complaints", complaints.queue, name="complaints"),
    path("complain/<slug:kind>/<slug:key>", complaints.complain, name="complain"),
    path("moderate/<slug:kind>/<slug:key>", moderate.moderate, name="moderate"),
    path("submit", submit.submit, name="submit"),
    path(client_archive.NAME, client_archive.download, name="client"),
    path("account/teams", teams.teams, name="own-teams"),
    path("account/teams/<slug:slug>", teams.team, name="own-team"),
    path("account/notices", notices.notices, name="notices"),
    path("account/feed/<slug:secret>.atom", notices.feed, name="own-feed"),
    *account_urls.urlpatterns,
    path("<path:way>/", redirects.without_slash),
]
handler400 = "leaderboard.api.errors.bad_request"
handler500 = "leaderboard.api.errors.server_error"
