"""What the reference took beside kernels, in summaries and standings of problems. `parts` stays the
last column, as SQLite reads a row only as far as it has to."""

import statistics
from itertools import groupby

import orjson
from django.db import migrations, models

WHERE = ("hardware_id", "world_size", "size", "dtype", "profile", "judge_version", "problem_id")
PART = (
    *("submission_id", "submission__model__is_baseline", "made", "correct", "best_speedup"),
    *("best_low", "utilisation", "best_run_id", "modes"),
)


def tell(apps, editor):
    """Attempts of summaries, problem by problem."""
    alias = editor.connection.alias
    runs = apps.get_model("leaderboard", "Run").objects.using(alias)
    summaries = apps.get_model("leaderboard", "Summary").objects.using(alias)
    for problem in list(summaries.order_by().values_list("problem_id", flat=True).distinct()):
        timed = runs.filter(kernel__problem_id=problem, baseline_us__isnull=False)
        taken = {str(pk): us for pk, us in timed.values_list("pk", "baseline_us")}
        rows = list(summaries.filter(problem_id=problem))
        for row in rows:
            for entry in row.attempts:
                is_correct = entry["speedup"] is not None
                entry["baseline_us"] = taken.get(entry["run"]) if is_correct else None
        summaries.bulk_update(rows, ["attempts"], batch_size=200)


def fill(apps, editor):
    alias = editor.connection.alias
    standings = apps.get_model("leaderboard", "ProblemStanding").objects.using(alias)
    summaries = apps.get_model("leaderboard", "Summary").objects.using(alias)
    shown = summaries.filter(submission__visibility="public", submission__moderation="accepted")
    found = shown.order_by(*WHERE, "submission_id").values_list(*WHERE, *PART, "attempts")
    for place, group in groupby(found.iterator(), key=lambda row: row[: len(WHERE)]):
        rows = [(*row[len(WHERE) : -1], _median(row[-1])) for row in group]
        times = [row[-1] for row in rows if row[-1] is not None]
        cuts = statistics.quantiles(times, n=4, method="inclusive") if times[1:] else 3 * times
        own = standings.filter(**dict(zip(WHERE, place, strict=True)))
        own.update(
            parts=orjson.dumps(rows).decode(),
            baseline_runs=sum(row[PART.index("correct")] for row in rows),
            **dict(zip(("baseline_low_us", "baseline_us", "baseline_high_us"), cuts)),
        )


def _median(attempts):
    taken = [e["baseline_us"] for e in attempts if e["baseline_us"] is not None]
    return round(statistics.median(taken), 3) if taken else None


def uncompressed(apps, editor):
    if editor.connection.vendor == "postgresql":
        editor.execute("ALTER TABLE leaderboard_problemstanding ALTER COLUMN parts SET STORAGE EXTERNAL")


def refill(apps, editor):
    """Backwards: parts as 0013 makes them."""
    alias = editor.connection.alias
    standings = apps.get_model("leaderboard", "ProblemStanding").objects.using(alias)
    summaries = apps.get_model("leaderboard", "Summary").objects.using(alias)
    shown = summaries.filter(submission__visibility="public", submission__moderation="accepted")
    for pk, *place in list(standings.values_list("pk", *WHERE)):
        own = shown.filter(**dict(zip(WHERE, place, strict=True))).order_by("submission_id")
        parts = orjson.dumps(list(own.values_list(*PART))).decode()
        standings.filter(pk=pk).update(parts=parts)


class Migration(migrations.Migration):

    dependencies = [
        ("leaderboard", "0017_exact_thresholds"),
    ]

    operations = [
        migrations.RunPython(tell, migrations.RunPython.noop),
        migrations.RunPython(migrations.RunPython.noop, refill),
        migrations.RunPython(migrations.RunPython.noop, uncompressed),
        # With a default, to be added again on the way back.
        migrations.AlterField("problemstanding", "parts", models.TextField(default="[]")),
        migrations.RemoveField("problemstanding", "parts"),
        migrations.AddField("problemstanding", "baseline_runs", models.PositiveIntegerField(default=0), preserve_default=False),
        migrations.AddField("problemstanding", "baseline_us", models.FloatField(null=True)),
        migrations.AddField("problemstanding", "baseline_low_us", models.FloatField(null=True)),
        migrations.AddField("problemstanding", "baseline_high_us", models.FloatField(null=True)),
        migrations.AddField("problemstanding", "parts", models.TextField(default="[]"), preserve_default=False),
        migrations.RunPython(uncompressed, migrations.RunPython.noop),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
