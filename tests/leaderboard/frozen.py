"""A board to freeze, for the tests of snapshots: submissions of every standing, some not public."""

from __future__ import annotations

import gzip
import json
from io import StringIO
from pathlib import Path
from typing import Any

from django.core.management import call_command

from evaluator.messages.report import Verdict
from leaderboard.models import Moderation, Submission, Visibility
from leaderboard.publishing import snapshots
from tests.leaderboard import factory


def make_board() -> dict[str, Submission]:
    problem = factory.make_problem()
    factory.make_publication()
    made = {}
    for name, speedup in (("fine", 2.0), ("disputed", 3.0), ("invalidated", 4.0)):
        made[name] = factory.make_submission(f"Model {name}")
        factory.make_judged(made[name], problem, speedup=speedup)
    factory.make_judged(made["fine"], problem, Verdict.OUTPUT_MISMATCH)
    factory.make_run(factory.make_kernel(made["fine"], problem, attempt=9))
    for name in (Moderation.DISPUTED, Moderation.INVALIDATED):
        reason = {"moderation": name, "moderation_reason": "It reads the answer."}
        Submission.objects.filter(pk=made[name].pk).update(**reason)
    for visibility in (Visibility.PRIVATE, Visibility.UNLISTED):
        secret = factory.make_submission(f"Secret {visibility}", visibility=visibility)
        factory.make_judged(secret, problem, speedup=5.0)
        made[visibility] = secret
    return made


def freeze(tag: str = "2026-11") -> Path:
    call_command("make_snapshot", tag, stdout=StringIO())
    return snapshots.folder(tag)


def rows_of(folder: Path, table: str) -> list[dict[str, Any]]:
    with gzip.open(folder / f"{table}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]
