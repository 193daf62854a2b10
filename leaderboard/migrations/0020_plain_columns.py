"""Rows that pages read hold JSON with names in place of packed numbers, and are called what they are.

`migrate` makes them of the runs at its end, and so wherever the summary is of another format than
the release reads. FKs stand first, as SQLite reads a row only as far as it has to.
"""

import django.db.models.deletion
from django.db import migrations, models

SETTING = ("hardware_id", "world_size", "size", "dtype", "profile", "judge_version")
SETTING_FIELDS = ("hardware", *SETTING[1:])
DTYPES = [(name, name) for name in ("float32", "bfloat16", "float16")]
PROFILES = [(name, name) for name in ("upstream", "hardened")]


def reference(to, **more):
    return models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to=f"leaderboard.{to}", **more)


def place(name, **more):
    return [
        ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
        (name, reference(name, **more)),
        ("hardware", reference("hardware", db_index=False)),
        ("world_size", models.PositiveSmallIntegerField()),
        ("size", models.CharField(max_length=32)),
        ("dtype", models.CharField(choices=DTYPES, max_length=16)),
        ("profile", models.CharField(choices=PROFILES, max_length=16)),
        ("judge_version", models.CharField(max_length=32)),
    ]


def clear(apps, editor):
    """Either way, what is summed up is of no use to the other release."""
    apps.get_model("leaderboard", "Summary").objects.using(editor.connection.alias).all().delete()


def uncompressed(apps, editor):
    """PostgreSQL would take longer to compress these than all else to store a result."""
    if editor.connection.vendor == "postgresql":
        names = ("by_category", "by_threshold", "cells", "outcomes")
        changes = ", ".join(f"ALTER COLUMN {name} SET STORAGE EXTERNAL" for name in names)
        editor.execute(f"ALTER TABLE leaderboard_leaderboardrow {changes}")


class Migration(migrations.Migration):

    dependencies = [
        ("leaderboard", "0019_packed_parts"),
    ]

    operations = [
        migrations.RunPython(clear, migrations.RunPython.noop),
        migrations.DeleteModel("Standing"),
        migrations.DeleteModel("ProblemStanding"),
        # No format that a release has: what is stored was written by another one.
        migrations.AddField("dataversion", "summary_format", models.PositiveIntegerField(default=0)),
        # Last again, for SQLite; there is no row that could lose it.
        migrations.RemoveField("summary", "attempts"),
        migrations.AddField("summary", "baseline_us", models.FloatField(null=True)),
        migrations.AddField("summary", "attempts", models.JSONField(default=list), preserve_default=False),
        migrations.AddIndex(
            "summary",
            models.Index(
                fields=[
                    *("problem", *SETTING_FIELDS, "submission", "made", "correct", "best_speedup", "best_low"),
                    *("utilisation", "best_run", "baseline_us", "modes"),
                ],
                name="summary_aggregate",
            ),
        ),
        migrations.CreateModel(
            name="LeaderboardRow",
            fields=[
                *place("submission", related_name="leaderboard_rows", db_index=False),
                ("attempted", models.PositiveSmallIntegerField()),
                ("made", models.PositiveIntegerField()),
                ("digest", models.CharField(max_length=64)),
                ("total", models.TextField()),
                ("solved", models.TextField()),
                ("by_category", models.TextField()),
                ("by_threshold", models.TextField()),
                ("cells", models.TextField()),
                ("outcomes", models.TextField()),
            ],
            options={
                "ordering": ("submission_id", *SETTING),
                "indexes": [models.Index(fields=[*SETTING_FIELDS, "submission", "attempted"], name="leaderboard_row_board")],
                "constraints": [
                    models.UniqueConstraint(fields=("submission", *SETTING_FIELDS), name="leaderboard_row_once"),
                    models.CheckConstraint(condition=models.Q(("attempted__gte", 1)), name="leaderboard_row_has_problems"),
                ],
            },
        ),
        migrations.RunPython(uncompressed, migrations.RunPython.noop),
        migrations.CreateModel(
            name="ProblemAggregate",
            fields=[
                *place("problem", related_name="aggregates"),
                ("submissions", models.PositiveIntegerField()),
                ("solved", models.PositiveIntegerField()),
                ("best_speedup", models.FloatField(null=True)),
                ("utilisation", models.FloatField(null=True)),
                ("usual_utilisation", models.FloatField(null=True)),
                ("run", reference("run", null=True, related_name="+", db_index=False)),
                ("made", models.PositiveIntegerField()),
                ("correct", models.PositiveIntegerField()),
                ("faster", models.PositiveIntegerField()),
                ("modes", models.JSONField()),
                ("baseline_runs", models.PositiveIntegerField()),
                ("baseline_us", models.FloatField(null=True)),
                ("baseline_low_us", models.FloatField(null=True)),
                ("baseline_high_us", models.FloatField(null=True)),
            ],
            options={
                "ordering": ("problem_id", *SETTING),
                "constraints": [
                    models.UniqueConstraint(fields=(*SETTING_FIELDS, "problem"), name="problem_aggregate_once"),
                    models.CheckConstraint(
                        condition=models.Q(("best_speedup", None), ("solved", 0))
                        | models.Q(("best_speedup__gt", 0), ("run__isnull", False), ("solved__gte", 1)),
                        name="problem_aggregate_best_is_solved",
                    ),
                    models.CheckConstraint(condition=models.Q(("solved__lte", models.F("submissions"))), name="problem_aggregate_counts_fit"),
                ],
            },
        ),
        migrations.RunPython(migrations.RunPython.noop, clear),
    ]
