from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError

from leaderboard.kit.request_error import RequestError
from leaderboard.models import Harness, Visibility
from leaderboard.models.choices import LICENCES, PLACEMENTS
from leaderboard.models.submissions import MAX_STEP_BUDGET
from leaderboard.submissions.archives import read_archive, read_folder
from leaderboard.submissions.from_git import fill_from
from leaderboard.submissions.intake import Accepted, Metadata, accept
from leaderboard.submissions.sources import HandedIn, handed_in
from leaderboard.submissions.target_selection import TargetRequest

TARGET_FIELDS = ("device", "hardware", "size", "dtype", "profile", "placement")
AS_SAID = (
    *("model", "vendor", "step_budget", "notes", "cost_usd", "link", "licence"),
    *("withholds_source", "public_from", "team"),
)
CHOICES = {"placement": [name for name, _ in PLACEMENTS]}


def _handed_in(path: Path, attempt: int) -> HandedIn:
    if path.is_dir():
        return handed_in(read_folder(path), attempt)
    with path.open("rb") as file:
        return handed_in(read_archive(file), attempt)


def _moment(text: str) -> datetime:
    """Return a date and time, of UTC unless it says otherwise. Raises ValueError."""
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _steps(text: str) -> int:
    """Return a step budget. Raises ValueError."""
    steps = int(text)
    if not 1 <= steps <= MAX_STEP_BUDGET:
        raise ValueError(text)
    return steps


def _add_metadata(parser: ArgumentParser) -> None:
    """Add what a submission says of itself, as the form and the API take it."""
    parser.add_argument("--model", default="", help="else the name of a published tree says it")
    parser.add_argument("--harness", choices=Harness.values)
    parser.add_argument("--vendor", default="")
    parser.add_argument("--notes", default="")
    parser.add_argument("--link", default="", help="https://… of a page about it")
    parser.add_argument("--cost-usd", type=float, help="what making all its kernels cost")
    parser.add_argument("--step-budget", type=_steps, help="steps of an agentic harness")
    parser.add_argument("--team", default="", help="of its owner: the last part of its address")
    parser.add_argument(
        "--visibility", choices=Visibility.values, help="default: public; of an embargo private"
    )
    parser.add_argument(
        "--public-from",
        type=_moment,
        metavar="DATE",
        help="an embargo: hidden until then, as 2026-12-24T00:00Z",
    )
    parser.add_argument(
        "--licence",
        choices=[name for name, _ in LICENCES],
        default="",
        help="its kernels may be trained on under it; default: nobody may",
    )
    parser.add_argument(
        "--withhold-source",
        dest="withholds_source",
        action="store_true",
        help="show results, but no source",
    )


def _metadata(options: Mapping[str, Any]) -> Metadata:
    usual = Visibility.PRIVATE if options["public_from"] else Visibility.PUBLIC
    return Metadata(
        harness=Harness(options["harness"]),
        visibility=Visibility(options["visibility"] or usual),
        **{name: options[name] for name in AS_SAID},
    )


class Command(BaseCommand):
    help = (
        "Store a folder or an archive of <number>_<slug>_<backend>.py files as one submission, "
        "with what it tells of how they were made, and queue its runs. Repeated with the same "
        "files and answers it stores nothing new. What the name of a published tree says "
        "(solutions_cuda_bf16_h100_8_<provider>_<model>) need not be given. "
        "With --from-git and no folder: fill in sources that are not held here."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, nargs="?")
        parser.add_argument("--from-git", type=Path, help="clone of the repository that has them")
        _add_metadata(parser)
        parser.add_argument("--owner", default="operator", help="user name, made if it is new")
        parser.add_argument("--attempt", type=int, default=1)
        parser.add_argument("--world-size", type=int)
        for name in TARGET_FIELDS:
            parser.add_argument(f"--{name}", choices=CHOICES.get(name))
        parser.add_argument("--without-runs", action="store_true", help="store only")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["from_git"]:
            self._fill(options["from_git"])
            return
        if options["folder"] is None or options["harness"] is None:
            raise CommandError("give a folder and --harness, or --from-git")
        if not options["folder"].exists():
            raise CommandError(f"{options['folder']} is not a folder or an archive")
        owner, _ = get_user_model().objects.get_or_create(username=options["owner"])
        requested = TargetRequest(
            world_size=options["world_size"], **{name: options[name] for name in TARGET_FIELDS}
        )
        try:
            accepted = accept(
                owner,
                _metadata(options),
                _handed_in(options["folder"], options["attempt"]),
                requested,
                idempotency_key=f"folder {options['folder'].resolve()}"[:200],
                with_runs=not options["without_runs"],
            )
        except RequestError as error:
            detail = "".join(f"\n  {name}: {text}" for name, text in error.fields.items())
            raise CommandError(f"{error}{detail}") from None
        self._say(accepted)

    def _say(self, accepted: Accepted) -> None:
        word = "stored" if accepted.is_new else "already stored"
        runs = len(accepted.runs)
        self.stdout.write(f"submission {accepted.submission.pk} {word}, {runs} runs")
        older = accepted.submission.kernels.exclude(older_task="").order_by("problem_id")
        for number, task in older.values_list("problem_id", "older_task").distinct():
            self.stdout.write(f"problem {number}: written for an older task, {task}: not counted")
        for path in accepted.left_out:
            self.stdout.write(f"left out, since PKB has withdrawn the problem: {path}")

    def _fill(self, clone: Path) -> None:
        if not clone.is_dir():
            raise CommandError(f"{clone} is not a folder")
        filled = fill_from(clone)
        for path, why in filled.left_out.items():
            self.stdout.write(f"left out: {path}: {why}")
        self.stdout.write(f"{filled.count} sources filled in, {len(filled.left_out)} left out")
