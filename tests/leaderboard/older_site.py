"""Fills a small site. In a clone of 0.1 this made `site_of_0_1.tar.xz`, which 0.2 carries over.

In a clone of commit 354f5f6e with this file, once with SQLite and once with PostgreSQL 15:

    python manage.py migrate
    python manage.py shell -c "from tests.leaderboard import older_site; older_site.fill()"
    python manage.py dumpdata --output sqlite/rows.json
    python manage.py backup sqlite/backup
"""

from __future__ import annotations

from django.utils import timezone

from evaluator.messages.report import Verdict
from leaderboard.models import (
    ApiToken,
    Ban,
    Decline,
    Kernel,
    Membership,
    Moderation,
    RefusedReport,
    Role,
    Run,
    Submission,
    Team,
    Transcript,
    Visibility,
    WorkerHost,
)
from leaderboard.staff import complaints, moderation, rulings
from tests.leaderboard import factory


def fill() -> None:
    """Make rows of every kind whose tables refer to another or are kept for ever."""
    first, second = factory.make_problem(), factory.make_problem(2, "p2", "data")
    open_one = factory.make_submission("Open Model", k=2)
    ruled = factory.make_judged(open_one, first, speedup=2.0)
    factory.make_judged(open_one, first, speedup=1.5)
    factory.make_judged(open_one, second, Verdict.TIMEOUT)
    hidden = factory.make_submission("Hidden Model", visibility=Visibility.PRIVATE, owner="other")
    factory.make_judged(hidden, first)
    unlisted = factory.make_submission("Open Model", visibility=Visibility.UNLISTED)
    waiting = factory.make_run(factory.make_kernel(unlisted, second))
    staff = factory.make_staff()
    rulings.rule(ruled, staff, Moderation.INVALIDATED, "It reads the clock.")
    moderation.moderate(hidden, staff, Moderation.DISPUTED, "Two people claim it.")
    complaints.complain(factory.make_user("other"), open_one, "This kernel is mine.")
    Ban.objects.create(user=factory.make_user("banned"), reason="Spam.")
    factory.make_publication()
    _of_a_host(waiting, open_one, Kernel.objects.order_by("pk")[0])


def _of_a_host(run: Run, submission: Submission, kernel: Kernel) -> None:
    """Make what workers, teams and their tokens leave behind."""
    owner, now = factory.make_user("owner"), timezone.now()
    worker = ApiToken.objects.create(scope="worker", prefix="pkb_1", digest="d" * 64, name="host")
    ApiToken.objects.create(scope="submit", prefix="pkb_2", digest="e" * 64, name="pc", owner=owner)
    place = {"host": "host-1", "queue": "cpu", "hardware": "CPU", "isolation": "bwrap"}
    WorkerHost.objects.create(**place, versions={"torch": "2"}, last_seen_at=now, token=worker)
    Decline.objects.create(run=run, host="host-1", reason="no Triton", declined_at=now)
    RefusedReport.objects.create(run=run, host="host-1", token=worker, code="c", reason="r")
    team = Team.objects.create(slug="team", name="Team", account=factory.make_user("account"))
    Membership.objects.create(team=team, user=owner, role=Role.OWNER)
    told = {"notes": "Line one.\nÜber zwei.", "manifest": {"seed": 1}}
    Submission.objects.filter(pk=submission.pk).update(team=team, **told)
    words = {"attempt": 1, "packed": b"x\x00\xff", "size_bytes": 3}
    Transcript.objects.create(submission=submission, problem=kernel.problem, **words)
