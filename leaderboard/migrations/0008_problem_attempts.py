"""Standings of problems count attempts, those of problems that are not scored too."""

from itertools import groupby

from django.db import migrations, models

from leaderboard.read_model.problem_aggregates import Best, columns_of

SETTING = ("hardware_id", "world_size", "size", "dtype", "profile", "judge_version")
WHERE = (*SETTING, "problem_id")
PART = Best._fields[:-1]
LATER = ("parts", "baseline_runs", "baseline_us", "baseline_low_us", "baseline_high_us")


def fill(apps, editor):
    alias = editor.connection.alias
    standings = apps.get_model("leaderboard", "ProblemStanding").objects.using(alias)
    summaries = apps.get_model("leaderboard", "Summary").objects.using(alias)
    standings.all().delete()
    shown = summaries.filter(submission__visibility="public", submission__moderation="accepted")
    found = shown.order_by(*WHERE, "submission_id").values_list(*WHERE, *PART)
    for place, group in groupby(list(found), key=lambda row: row[: len(WHERE)]):
        columns = columns_of(Best(*row[len(WHERE) :], baseline_us=None) for row in group)
        for name in LATER:  # since 0013 and 0018
            del columns[name]
        standings.create(**dict(zip(WHERE, place, strict=True)), **columns)


class Migration(migrations.Migration):

    dependencies = [
        ("leaderboard", "0007_totals"),
    ]

    operations = [
        migrations.AddField("problemstanding", "made", models.PositiveIntegerField(default=0), preserve_default=False),
        migrations.AddField("problemstanding", "correct", models.PositiveIntegerField(default=0), preserve_default=False),
        migrations.AddField("problemstanding", "faster", models.PositiveIntegerField(default=0), preserve_default=False),
        migrations.AddField("problemstanding", "modes", models.JSONField(default=list), preserve_default=False),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
