"""Standings of problems hold what each submission adds to them, so that a result need not read the
summaries of all. PostgreSQL compresses nothing of standings: that took most of the time in which it
stored a result, and saves a quarter."""

import orjson
from django.db import migrations, models

WHERE = ("hardware_id", "world_size", "size", "dtype", "profile", "judge_version", "problem_id")
PART = (
    *("submission_id", "submission__model__is_baseline", "made", "correct", "best_speedup"),
    *("best_low", "utilisation", "best_run_id", "modes"),
)
PACKED = {
    "standing": ("by_threshold", "by_category", "cells", "kernels", "outcomes", "speedups"),
    "problemstanding": ("parts",),
}


def fill(apps, editor):
    alias = editor.connection.alias
    standings = apps.get_model("leaderboard", "ProblemStanding").objects.using(alias)
    summaries = apps.get_model("leaderboard", "Summary").objects.using(alias)
    shown = summaries.filter(submission__visibility="public", submission__moderation="accepted")
    for pk, *place in list(standings.values_list("pk", *WHERE)):
        own = shown.filter(**dict(zip(WHERE, place, strict=True))).order_by("submission_id")
        parts = orjson.dumps(list(own.values_list(*PART))).decode()
        standings.filter(pk=pk).update(parts=parts)


def uncompressed(apps, editor):
    _store(editor, "EXTERNAL")


def compressed(apps, editor):
    _store(editor, "EXTENDED")


def _store(editor, how):
    if editor.connection.vendor == "postgresql":
        for table, columns in PACKED.items():
            changes = ", ".join(f"ALTER COLUMN {name} SET STORAGE {how}" for name in columns)
            editor.execute(f"ALTER TABLE leaderboard_{table} {changes}")


class Migration(migrations.Migration):

    dependencies = [
        ("leaderboard", "0012_run_of_kernel"),
    ]

    operations = [
        migrations.AddField("problemstanding", "parts", models.TextField(default="[]"), preserve_default=False),
        migrations.RunPython(uncompressed, compressed),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
