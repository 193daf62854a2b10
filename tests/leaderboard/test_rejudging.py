"""Stale results are judged again and kept; who may ask for it, and what is left out."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from evaluator.messages.report import JUDGE_VERSION, Verdict
from leaderboard.models import AuditEntry, DataVersion, Hardware, Problem, Run, Submission, Summary
from leaderboard.models.staleness import outdated, stale, why_stale
from leaderboard.runs import evaluation
from tests.leaderboard import factory
from tests.leaderboard.conftest import Bells
from tests.leaderboard.running import claim, fresh, report_of, say_hello

pytestmark = [pytest.mark.django_db, pytest.mark.server]
OLDER = "6"


def rejudge(*words: str) -> str:
    out = StringIO()
    call_command("rejudge", *words, stdout=out)
    return out.getvalue()


def judged(problem: Problem, *, judge: str = JUDGE_VERSION, **changes: Any) -> Run:
    """A kernel of a submission of its own, judged by that judge."""
    kernel = factory.make_kernel(factory.make_submission(), problem)
    run = factory.make_run(kernel, **changes)
    return factory.finish(run, factory.make_report(run, judge_version=judge))


def rewritten(problem: Problem) -> Problem:
    """The same problem after its file has changed."""
    Problem.objects.filter(pk=problem.pk).update(digest="f" * 64)
    problem.refresh_from_db()
    return problem


def staff_client() -> Client:
    client = Client()
    client.force_login(factory.make_staff())
    return client


def test_a_result_of_another_problem_version_or_judge_is_stale(problem: Problem) -> None:
    current, by_older = judged(problem), judged(problem, judge=OLDER)
    assert list(stale(Run.objects.all())) == [by_older]
    assert why_stale(current) == ""
    assert why_stale(by_older) == f"judged by an older judge (6, now {JUDGE_VERSION})"
    rewritten(problem)
    assert set(stale(Run.objects.all())) == {current, by_older}
    assert why_stale(fresh(current)) == "judged on an older version of the problem"
    assert why_stale(fresh(by_older)).startswith("judged on an older version of the problem and by")


def test_what_has_no_result_is_not_stale(run: Run) -> None:
    rewritten(run.kernel.problem)
    assert why_stale(fresh(run)) == ""
    assert not stale(Run.objects.all()).exists()


@pytest.mark.parametrize(("version", "word"), [("9", "an older"), ("11", "another")])
def test_versions_of_the_judge_are_numbers(version: str, word: str) -> None:
    assert outdated("a", "a", version, "").startswith(f"judged by {word} judge ({version},")


def test_stale_results_get_new_runs_and_keep_the_old_ones(
    problem: Problem, bells: Bells, django_capture_on_commit_callbacks: Any
) -> None:
    say_hello()
    old = judged(problem, judge=OLDER, dtype="float32")
    before = Run.objects.filter(pk=old.pk).values().get()
    version = DataVersion.objects.current()
    with django_capture_on_commit_callbacks(execute=True):
        assert rejudge("--stale") == "stale results: 1 runs queued\n"
    new = Run.objects.exclude(pk=old.pk).get()
    assert bells == [(new.pk, "cpu")]
    same = ("kernel_id", "hardware_id", "world_size", "size", "dtype", "profile", "device")
    assert [getattr(new, name) for name in same] == [getattr(old, name) for name in same]
    assert Run.objects.filter(pk=old.pk).values().get() == before
    assert DataVersion.objects.current() > version
    assert AuditEntry.objects.get(action="rejudge").detail == {"runs": 1}
    evaluation.finish(new.pk, claim(new, "h").holding, report_of(new))
    assert fresh(new).judge_version == JUDGE_VERSION
    assert {row.judge_version for row in Summary.objects.all()} == {OLDER, JUDGE_VERSION}
    assert "0 runs queued" in rejudge("--stale")


def test_asked_twice_while_they_wait_nothing_more_is_queued(problem: Problem) -> None:
    say_hello()
    rewritten(problem)
    judged(problem, judge=OLDER)
    assert "1 runs queued" in rejudge("--stale")
    for words in (("--stale",), ("--problem", problem.slug)):
        assert "0 runs queued" in rejudge(*words)
    assert Run.objects.count() == 2
    assert AuditEntry.objects.count() == 1


def test_a_run_that_waits_for_the_older_problem_does_not_stand_for_a_new_one(
    problem: Problem,
) -> None:
    say_hello()
    old = judged(problem)
    factory.make_run(old.kernel)
    rewritten(problem)
    assert "1 runs queued" in rejudge("--stale")
    assert Run.objects.queued().filter(problem_digest=problem.digest).count() == 1


def test_a_new_run_that_fails_leaves_the_result_stale(problem: Problem) -> None:
    say_hello()
    judged(problem, judge=OLDER)
    rejudge("--stale")
    new = Run.objects.queued().get()
    evaluation.cancel(new)
    assert "1 runs queued" in rejudge("--stale")


def test_only_what_was_chosen_is_judged_again(problem: Problem) -> None:
    say_hello()
    other = factory.make_problem(2, "gemm")
    runs = [judged(one, judge=OLDER) for one in (problem, problem, other)]
    number = str(runs[1].kernel.submission_id)
    assert rejudge("--stale", "--submission", number, "--problem", "2").count("0 runs") == 1
    assert "1 runs queued" in rejudge("--stale", "--submission", number)
    assert "1 runs queued" in rejudge("--stale", "--problem", "gemm")
    waiting = Run.objects.queued().values_list("kernel", flat=True)
    assert set(waiting) == {runs[1].kernel_id, runs[2].kernel_id}


def test_without_stale_a_selection_is_judged_again_whole(problem: Problem) -> None:
    say_hello()
    run = judged(problem)
    assert "0 runs queued" in rejudge("--stale")
    assert "1 runs queued" in rejudge("--submission", str(run.kernel.submission_id))


def test_of_several_runs_alike_one_is_queued(problem: Problem) -> None:
    say_hello()
    run = judged(problem, judge=OLDER)
    again = factory.make_run(run.kernel)
    factory.finish(again, factory.make_report(again, Verdict.TIMEOUT, judge_version=OLDER))
    assert "1 runs would be queued" in rejudge("--stale", "--dry-run")
    assert not Run.objects.queued().exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "Nothing says which"),
        (("--wait",), "Nothing says which"),
        (("--stale", "--problem", "nope"), "no problem 'nope'"),
        (("--problem", "99999999"), "no problem"),
        (("--submission", "x"), "no submission 'x'"),
        (("--stale", "--submission", "-1"), "no submission"),
        (("--submission", "9" * 40), "no submission"),
        (("--submission", "\u0663"), "no submission"),
    ],
)
def test_bad_input_is_named(words: tuple[str, ...], said: str, problem: Problem) -> None:
    with pytest.raises(CommandError, match=said):
        rejudge(*words)


def test_what_no_living_host_can_judge_is_left_out_with_the_reason(problem: Problem) -> None:
    judged(problem, judge=OLDER)
    said = rejudge("--stale")
    assert "0 runs queued" in said
    assert f"1 left out: no host of cpu with judge {JUDGE_VERSION} is alive (problems 1)" in said
    assert not AuditEntry.objects.exists()
    assert "1 runs queued" in rejudge("--stale", "--wait")


def test_an_imported_class_of_hardware_without_hosts_is_left_out(problem: Problem) -> None:
    say_hello()
    rare = Hardware.objects.create(slug="h9x4", title="4 x H9", device="cuda", max_world_size=4)
    run = factory.make_run(factory.make_kernel(factory.make_submission(), problem))
    Run.objects.filter(pk=run.pk).update(hardware=rare, device="cuda")
    factory.finish(run, factory.make_report(run, judge_version=OLDER))
    said = rejudge("--stale")
    assert "0 runs queued" in said
    assert "no host of h9x4" in said


def left_out(problem: Problem) -> str:
    say_hello()
    judged(problem, judge=OLDER)
    said = rejudge("--stale", "--wait")
    assert "0 runs queued" in said
    return said


def test_a_withdrawn_problem_is_left_out(problem: Problem) -> None:
    Problem.objects.update(scored=False, unscored_reason="It is no longer part of the benchmark.")
    assert "no longer part of the benchmark" in left_out(problem)


def test_a_size_that_the_problem_has_no_more_is_left_out(problem: Problem) -> None:
    del problem.payload["sizes"]["tiny"]
    problem.save()
    assert "size tiny does not go with allreduce" in left_out(problem)


def test_an_invalidated_submission_is_left_out(problem: Problem) -> None:
    say_hello()
    run = judged(problem, judge=OLDER)
    own = Submission.objects.filter(pk=run.kernel.submission_id)
    own.update(moderation="invalidated", moderation_reason="Copied.")
    assert f"submission {run.kernel.submission_id} is invalidated" in rejudge("--stale")
    own.update(moderation="disputed")
    assert "1 runs queued" in rejudge("--stale")


def test_the_button_shows_first_and_queues_then(problem: Problem) -> None:
    say_hello()
    run = judged(problem, judge=OLDER)
    form = {"submission": str(run.kernel.submission_id)}
    client = staff_client()
    seen = client.get("/rejudge", form)
    assert "Queue 1 run</button>" in seen.content.decode()
    assert "no-store" in seen["Cache-Control"]
    assert Run.objects.count() == 1
    done = client.post("/rejudge", form).content.decode()
    assert "1 run queued:" in done
    assert Run.objects.queued().count() == 1
    entry = AuditEntry.objects.get(action="rejudge")
    assert entry.actor == User.objects.get(username="staff")
    assert "Nothing to judge again" in client.get("/rejudge", form).content.decode()


def test_the_admin_leads_from_one_submission_to_the_button(problem: Problem) -> None:
    one, other = (judged(problem, judge=OLDER).kernel.submission_id for _ in range(2))
    root = Client()
    root.force_login(User.objects.create_superuser("root"))
    for chosen, where in (([one], f"/rejudge?submission={one}"), ([one, other], None)):
        form = {"action": "judge_again", "_selected_action": chosen}
        answer = root.post("/admin/leaderboard/submission/", form)
        assert answer.get("Location") == (where or "/admin/leaderboard/submission/")
    assert not Run.objects.queued().exists()


def test_only_staff_may_press_it(problem: Problem, client: Client) -> None:
    say_hello()
    judged(problem, judge=OLDER)
    assert client.post("/rejudge")["Location"] == "/account/login?next=/rejudge"
    client.force_login(factory.make_user("owner"))
    assert client.get("/rejudge").status_code == 403
    assert client.post("/rejudge").status_code == 403
    careful = Client(enforce_csrf_checks=True)
    careful.force_login(factory.make_staff())
    assert careful.post("/rejudge").status_code == 403
    assert staff_client().put("/rejudge").status_code == 405
    assert Run.objects.count() == 1


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ({"which": "all"}, 400),
        ({"problem": "<script>"}, 404),
        ({"submission": "1e3"}, 404),
    ],
)
def test_a_bad_form_is_explained(form: dict[str, str], status: int, problem: Problem) -> None:
    for answer in (staff_client().get("/rejudge", form), staff_client().post("/rejudge", form)):
        assert answer.status_code == status
        text = answer.content.decode()
        assert 'role="alert"' in text
        assert "<script>&" not in text.partition("</head>")[2]
