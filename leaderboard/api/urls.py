"""Lists the addresses of the API."""

from django.urls import path, re_path

from leaderboard.api import (
    attempts,
    browse,
    errors,
    own,
    prompts,
    reading,
    run_list,
    schema,
    training,
    worker,
    writing,
)

urlpatterns = [
    path("", browse.index, name="api"),
    path("schema", schema.schema, name="api-schema"),
    path("problems", reading.problems, name="api-problems"),
    path("problems/<slug:name>", reading.problem, name="api-problem"),
    path("problems/<slug:name>/prompt", prompts.problem_prompt, name="api-prompt"),
    path("categories", reading.categories, name="api-categories"),
    path("models", reading.models, name="api-models"),
    path("submissions", writing.submissions_or_submit, name="api-submissions"),
    path("submissions/<submission:address>", writing.submission_or_edit, name="api-submission"),
    path("submissions/<int:number>/publish", own.publish, name="api-publish"),
    path("submissions/<int:number>/withdraw", own.withdraw, name="api-withdraw"),
    path("submissions/<int:number>/rerun", own.rerun, name="api-rerun"),
    path(
        "submissions/<submission:address>/<int:problem>/attempt-<int:attempt>",
        attempts.attempt,
        name="api-attempt",
    ),
    path("kernels/<slug:digest>", reading.kernel, name="api-kernel"),
    path("runs", run_list.runs, name="api-runs"),
    path("runs/<uuid:run_id>", reading.run, name="api-run"),
    path("runs/<uuid:run_id>/report", reading.report, name="api-report"),
    path("runs/<uuid:run_id>/cancel", writing.cancel, name="api-cancel"),
    path("training/batch", training.batch, name="api-training"),
    path("training/results", training.results, name="api-training-results"),
    path("training/cancel", training.cancelled, name="api-training-cancel"),
    path("leaderboard", reading.leaderboard, name="api-leaderboard"),
    path("status", reading.status, name="api-status"),
    path("worker/hello", worker.hello, name="worker-hello"),
    path("worker/runs/<uuid:run_id>/claim", worker.claim, name="worker-claim"),
    path("worker/runs/<uuid:run_id>/heartbeat", worker.heartbeat, name="worker-heartbeat"),
    path("worker/runs/<uuid:run_id>/finish", worker.finish, name="worker-finish"),
    path("worker/runs/<uuid:run_id>/fail", worker.fail, name="worker-fail"),
    re_path("", errors.unknown_address),
]
