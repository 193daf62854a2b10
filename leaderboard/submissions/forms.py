"""Defines forms of pages that need a login. They check shape; `intake` decides the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from django import forms
from django.contrib.auth.models import AbstractBaseUser
from django.http import QueryDict

from leaderboard.kit.durations import spelt
from leaderboard.metrics import verdicts
from leaderboard.models import Harness, Problem, Scope, Submission, Team, Visibility
from leaderboard.models.choices import BACKENDS, DTYPES, LICENCES, PROFILES, Choices
from leaderboard.models.submissions import MAX_COST_USD, MAX_LINK, MAX_NOTES, MAX_STEP_BUDGET
from leaderboard.read_model.queue_counts import Queue, queues_now
from leaderboard.submissions.editing import EDITABLE, may_set_embargo, visibilities
from leaderboard.submissions.target_selection import DEFAULTS

LIFETIMES = [("30", "30 days"), ("90", "90 days"), ("365", "one year"), ("", "never expires")]
SIZES = [("tiny", "tiny"), ("standard", "standard"), ("large", "large")]
USUAL = ("", "default")
CPU_RANKS = DEFAULTS["cpu"].world_size
_OF_PROBLEMS = ("number", "title", "ranked_from")
# What the form asks behind "More", by title.
MORE = {
    "How it was made": ("harness", "vendor", "step_budget", "cost_usd", "attempt", "step"),
    "Who sees it": ("visibility", "public_from", "withholds_source", "licence", "team", "link"),
    "How to judge it": ("hardware", "placement", "world_size", "size", "dtype", "profile"),
}
# What it is filled in with as in the user's last submission.
REMEMBERED = (
    *("harness", "step_budget", "visibility", "withholds_source"),
    *("licence", "link"),
)
MINUTE = "%Y-%m-%dT%H:%M"
FIXED = (
    "Public or not is settled once judging began, so that nobody is ranked by what went well."
    " Handed in again, kernels are judged anew."
)


class TokenForm(forms.Form):
    name = forms.CharField(max_length=80, help_text="What it is for, as in “nightly upload”.")
    scope = forms.ChoiceField(
        choices=[(Scope.SUBMIT.value, "submit and read"), (Scope.READ.value, "read")]
    )
    lifetime = forms.ChoiceField(
        choices=LIFETIMES, required=False, initial="90", label="Expires after"
    )

    @property
    def lifetime_or_none(self) -> timedelta | None:
        days = self.cleaned_data["lifetime"]
        return timedelta(days=int(days)) if days else None


def add_field_errors(form: forms.Form, told: Mapping[str, str], files_at: str = "") -> None:
    """Show what is said of single fields beside these, where nothing stands there yet; what is
    said of files beside the field `files_at`, if any."""
    before = set(form.errors)
    for name, said in told.items():
        if name in form.fields and name not in before:
            form.add_error(name, f"{said[:1].upper()}{said[1:].rstrip('.')}.")
        elif name not in form.fields and files_at:
            named = "" if said.startswith(name) else f"{name}: "
            form.add_error(files_at, f"{named}{said}")


class LongText(forms.CharField):
    """Takes text from an area, whose line ends browsers send as CR LF."""

    def __init__(self, *, rows: int, **kwargs: Any) -> None:
        attributes = {"rows": rows, "spellcheck": "false", "autocomplete": "off"}
        super().__init__(required=False, widget=forms.Textarea(attrs=attributes), **kwargs)

    def to_python(self, value: str | None) -> str:
        return super().to_python(value and value.replace("\r\n", "\n")) or ""


class MetadataForm(forms.Form):
    """Takes what a submission says of itself, when it is handed in and afterwards."""

    step_budget = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MAX_STEP_BUDGET,
        label="Step budget",
        help_text="How many steps an agentic harness could take; others have none.",
    )
    cost_usd = forms.FloatField(
        required=False,
        min_value=0,
        max_value=MAX_COST_USD,
        label="Cost, US$",
        help_text="What making all these kernels cost, if you know it.",
    )
    visibility = forms.ChoiceField(
        choices=Visibility.choices,
        initial=Visibility.PUBLIC,
        help_text="Public results are ranked; unlisted ones have an address only. Whether it is"
        " public cannot be changed once judging begins, unless a date says from when.",
    )
    public_from = forms.DateTimeField(
        required=False,
        label="Public from, UTC",
        widget=forms.DateTimeInput({"type": "datetime-local"}, format=MINUTE),
        input_formats=[MINUTE, f"{MINUTE}:%S"],
        help_text="An embargo: hidden until then, within a year, unless you publish it before.",
    )
    link = forms.CharField(
        required=False,
        max_length=MAX_LINK,
        widget=forms.URLInput(attrs={"placeholder": "https://"}),
        help_text="A page about it: a paper, a repository.",
    )
    licence = forms.ChoiceField(
        required=False,
        choices=[("", "nobody may"), *LICENCES],
        label="May be trained on, under",
        help_text="A licence puts public kernels with verdicts, times and transcripts into the"
        " training set of snapshots. Those made already stay as they are.",
    )
    notes = LongText(
        rows=4,
        max_length=MAX_NOTES,
        help_text="What readers should know: the prompt, settings of the model. Plain text.",
    )


class EditForm(MetadataForm):
    """Takes what the owner of a submission may change of it. A box that is not ticked publishes no
    source, whoever sends the form."""

    publish_source = forms.BooleanField(
        required=False,
        label="Publish the source",
        help_text="It is withheld now, with logs and transcripts. You cannot take this back.",
    )

    def __init__(self, submission: Submission, data: QueryDict | None = None) -> None:
        super().__init__(data, initial={name: getattr(submission, name) for name in EDITABLE})
        allowed = visibilities(submission)
        shown = self.fields["visibility"]
        assert isinstance(shown, forms.ChoiceField)
        shown.choices = [(one.value, one.label) for one in allowed]
        if len(allowed) < len(Visibility):
            shown.help_text = FIXED
        shown.disabled = len(allowed) == 1
        self.fields["public_from"].disabled = not may_set_embargo(submission)
        if submission.harness != Harness.AGENTIC:
            del self.fields["step_budget"]
        if not submission.withholds_source:
            del self.fields["publish_source"]

    @property
    def short(self) -> list[forms.BoundField]:
        names = ("step_budget", "cost_usd", "link", "licence", "visibility", "public_from")
        return [self[name] for name in (*names, "publish_source") if name in self.fields]

    @property
    def values(self) -> dict[str, Any]:
        """Return the new values by their names in a submission."""
        given = dict(self.cleaned_data)
        is_published = given.pop("publish_source", False)
        return {**given, "withholds_source": False} if is_published else given


class SubmitForm(MetadataForm):
    """Takes one kernel (problem and source) or an archive, never both."""

    withholds_source = forms.BooleanField(
        required=False,
        label="Withhold the source",
        help_text="Readers see results, and of the source its SHA-256 and size: no text, logs or"
        " transcripts. You can publish it later.",
    )
    model = forms.CharField(
        max_length=80,
        required=False,
        help_text="The language model that wrote the kernels. The name of a published tree in an"
        " archive says it too.",
    )
    vendor = forms.CharField(max_length=80, required=False)
    team = forms.ChoiceField(
        required=False, choices=(), help_text="Its members see it, also while it is private."
    )
    harness = forms.ChoiceField(
        choices=[(n, n) for n in Harness.values],
        initial=Harness.ZERO_SHOT,
        help_text="How the model was asked.",
    )
    problem = forms.ChoiceField(required=False, choices=())
    backend = forms.ChoiceField(
        required=False,
        choices=[("", "as found in the source"), *BACKENDS],
        help_text="PyTorch and C++ are judged on processors unless you choose GPUs under More.",
    )
    attempt = forms.IntegerField(
        required=False, min_value=1, max_value=100, help_text="Which sample this is, from 1."
    )
    step = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MAX_STEP_BUDGET,
        help_text="Which revision of an agent's attempt, from 1.",
    )
    source = LongText(rows=10, strip=False, help_text="The whole file. It defines solution(…).")
    archive = forms.FileField(
        required=False,
        label="Or an archive",
        help_text="A .zip or .tar.gz of files named <number>_<slug>_<backend>.py, or of attempts as"
        " pkb-attempts/1 has them: with usage, cost and transcripts.",
    )
    hardware = forms.ChoiceField(
        required=False, choices=(), help_text="Says the device, too: processors or GPUs."
    )
    world_size = forms.IntegerField(required=False, min_value=2, max_value=64, label="Ranks")
    size = forms.ChoiceField(required=False, choices=[USUAL, *SIZES])
    dtype = forms.ChoiceField(required=False, choices=[USUAL, *DTYPES], label="Type")
    profile = forms.ChoiceField(required=False, choices=[USUAL, *PROFILES], label="Inputs")
    placement = forms.ChoiceField(
        required=False,
        choices=[*verdicts.PLACEMENT_WORDS.items()],
        help_text="On one device a kernel is checked, never timed.",
    )

    def __init__(self, teams: Iterable[Team], *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        problems = list(Problem.objects.order_by("number").values_list(*_OF_PROBLEMS))
        self._offer("team", [("", "none"), *((team.slug, team.name) for team in teams)])
        self._offer("problem", [("", "Choose…"), *map(_problem_choice, problems)])
        self.practice_on_cpu = [number for number, _, least in problems if least > CPU_RANKS]
        self.queues = queues_now()
        self.has_gpus = any(one.hosts for one in self.queues if one.device == "cuda")
        self._offer("hardware", [USUAL, *((one.slug, _named(one)) for one in self.queues)])

    def _offer(self, name: str, choices: Choices) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = choices

    def clean(self) -> dict[str, object]:
        data = dict(super().clean() or {})
        has_source, has_archive = bool(data.get("source")), bool(data.get("archive"))
        if has_source == has_archive:
            said = "Give either one kernel's source or an archive: one of them, not both."
            for name in ("source", "archive"):
                self.add_error(name, said)
        elif has_source:
            for name in ("model", "problem"):
                if not data.get(name):
                    self.add_error(name, "One kernel needs this; an archive says it in its names.")
        return data

    @property
    def more(self) -> list[tuple[str, list[forms.BoundField]]]:
        """Return the fields that are not asked first, group by group."""
        return [(title, [self[name] for name in names]) for title, names in MORE.items()]

    @property
    def says_of_more(self) -> str:
        """Return in a few words what those hold that matter most."""
        about = [self[name].value() for name in ("harness", "visibility", "team")]
        setting = [self[name].value() for name in MORE["How to judge it"] if name != "placement"]
        asked = [*filter(None, setting)] or ["fewest ranks that are scored"]
        return ", ".join(str(value) for value in (*filter(None, about), *asked))

    @property
    def is_more_wrong(self) -> bool:
        return any(name in self.errors for names in MORE.values() for name in names)


def last_values(user: AbstractBaseUser) -> dict[str, object]:
    """Return what the last ranked submission of a user said of itself, as a form begins with it.
    What is of one submission alone is left out: its cost, its date and its notes, to which intake
    adds."""
    own = Submission.objects.filter(owner=user.pk, is_practice=False).order_by("-pk")
    last = own.select_related("team").first()
    if last is None:
        return {}
    told = {name: getattr(last, name) for name in REMEMBERED}
    return {**told, "team": last.team.slug if last.team else ""}


def _named(queue: Queue) -> str:
    """Return a class of hardware with how long a run waits there: `2 x H200, about 3 min`."""
    if not queue.hosts:
        return f"{queue.title}, no host now"
    known = queue.expected_wait_s is not None
    return f"{queue.title}, about {spelt(queue.expected_wait_s or 0)}" if known else queue.title


def _problem_choice(problem: tuple[int, str, int]) -> tuple[str, str]:
    number, title, least = problem
    scored = f" (scored from {least} ranks)" if least > CPU_RANKS else ""
    return str(number), f"{number}. {title}{scored}"
