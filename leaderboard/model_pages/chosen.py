"""Counts what a shown submission was chosen from: its owner sees results before others do."""

from __future__ import annotations

from django.db.models import Count, Exists, OuterRef, Subquery

from leaderboard.models import LanguageModel, Moderation, Run, Submission, Visibility
from leaderboard.models.model_names import hidden_slug
from leaderboard.models.submissions import SubmissionQuerySet
from leaderboard.models.teams import accounts_of, person_of

PUBLIC = Visibility.PUBLIC


def counted_submissions() -> dict[str, Subquery]:
    """Return annotations of a language model: the number of its public submissions (`submitted`)
    and of those that were withdrawn after a judge had begun (`withdrawn`)."""
    public = Submission.objects.filter(visibility=PUBLIC, is_practice=False)
    withdrawn = _judged(public.filter(moderation=Moderation.WITHDRAWN))
    return {"submitted": _of_a_model(public), "withdrawn": _of_a_model(withdrawn)}


def counted_record(found: LanguageModel, handed_in: int) -> dict[str, object]:
    """Return the head of the JSON of a model with these annotations."""
    withdrawn = vars(found)["withdrawn"] or 0
    own = {"model": found.name, "vendor": found.vendor, "handed_in": handed_in}
    return {**own, "withdrawn_after_judging": withdrawn}


def _of_a_model(submissions: SubmissionQuerySet) -> Subquery:
    own = submissions.filter(model=OuterRef("pk")).order_by().values("model")
    return Subquery(own.annotate(n=Count("pk")).values("n"))


def judged_and_hidden(found: Submission) -> int:
    """Return how many others of its model its owner, teams included, had had judged when it became
    public, and hides still; 0 for one that was public from the start."""
    if found.published_at is None or found.visibility != PUBLIC:
        return 0
    accounts = accounts_of(person_of(found.owner_id))
    rows = [found.model.slug, *(hidden_slug(found.model.slug, account) for account in accounts)]
    others = Submission.objects.filter(model__slug__in=rows, owner__in=accounts, is_practice=False)
    before = others.filter(created_at__lt=found.published_at).exclude(visibility=PUBLIC)
    return _judged(before).count()


def _judged(submissions: SubmissionQuerySet) -> SubmissionQuerySet:
    """Return those of which a judge has begun with a kernel."""
    return submissions.filter(Exists(Run.objects.begun().filter(kernel__submission=OuterRef("pk"))))
