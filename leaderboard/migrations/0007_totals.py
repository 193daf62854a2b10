"""What boards and lists of problems add up, kept so that a result changes little of it.

0008 fills the standings of problems.
"""

import json

import django.db.models.deletion
from django.db import migrations, models
from django.db.models.fields.json import KT

from leaderboard.read_model.leaderboard_rows import columns_of
from leaderboard.metrics.tallies import modes_of, tally_of

SETTING = ("hardware_id", "world_size", "size", "dtype", "profile", "judge_version")
SETTING_FIELDS = ("hardware", *SETTING[1:])
DTYPES = [(name, name) for name in ("float32", "bfloat16", "float16")]
PROFILES = [(name, name) for name in ("upstream", "hardened")]
BATCH = 500


def fill(apps, editor):
    alias = editor.connection.alias
    kinds = ("Problem", "Standing", "Submission", "Summary")
    rows = {name: apps.get_model("leaderboard", name).objects.using(alias) for name in kinds}
    fill_summaries(rows["Summary"])
    categories = dict(rows["Problem"].filter(scored=True).values_list("pk", "category"))
    for submission, k in list(rows["Submission"].order_by("pk").values_list("pk", "k")):
        fill_standings(rows, submission, k, categories)


def fill_summaries(summaries):
    for pk, attempts in summaries.order_by("pk").values_list("pk", "former").iterator(BATCH):
        correct = [entry for entry in attempts if entry["speedup"] is not None]
        best = max(correct, key=lambda entry: entry["speedup"], default={})
        summaries.filter(pk=pk).update(
            best_low=best.get("low"),
            utilisation=best.get("utilisation"),
            modes=modes_of(attempts),
            attempts=attempts,
        )


def fill_standings(rows, submission, k, categories):
    groups = {}
    for row in rows["Summary"].filter(submission=submission).order_by("problem_id"):
        if category := categories.get(row.problem_id):
            setting = tuple(getattr(row, name) for name in SETTING)
            tally = tally_of(row.problem_id, category, row.attempts)
            groups.setdefault(setting, []).append(tally)
    for setting, tallies in sorted(groups.items()):
        place = dict(zip(SETTING, setting, strict=True))
        columns = columns_of(tallies, k)
        # Text since 0011.
        values = {name: json.loads(columns[name]) for name in ("total", "by_category")}
        rows["Standing"].create(submission_id=submission, **place, **(columns | values))


def back(apps, editor):
    summaries = apps.get_model("leaderboard", "Summary").objects.using(editor.connection.alias)
    summaries.update(former=models.F("attempts"))


def setting():
    return [
        ("hardware", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to="leaderboard.hardware")),
        ("world_size", models.PositiveSmallIntegerField()),
        ("size", models.CharField(max_length=32)),
        ("dtype", models.CharField(choices=DTYPES, max_length=16)),
        ("profile", models.CharField(choices=PROFILES, max_length=16)),
        ("judge_version", models.CharField(max_length=32)),
    ]


def reference(to, **more):
    return models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to=f"leaderboard.{to}", **more)


class Migration(migrations.Migration):

    dependencies = [
        ("leaderboard", "0006_quick_pages"),
    ]

    operations = [
        migrations.AddField("problem", "source", models.GeneratedField(db_persist=True, expression=KT("payload__source"), output_field=models.TextField())),
        migrations.AddField("problem", "costs", models.GeneratedField(db_persist=True, expression=KT("payload__costs"), output_field=models.TextField())),
        migrations.AddField("problem", "baselines", models.GeneratedField(db_persist=True, expression=KT("payload__baselines"), output_field=models.TextField())),
        migrations.RenameField("summary", "attempts", "former"),
        migrations.AlterField("summary", "former", models.JSONField(null=True)),
        migrations.AddField("summary", "best_low", models.FloatField(null=True)),
        migrations.AddField("summary", "utilisation", models.FloatField(null=True)),
        migrations.AddField("summary", "modes", models.JSONField(default=list), preserve_default=False),
        migrations.AddField("summary", "attempts", models.JSONField(default=list), preserve_default=False),
        # Everything in it is made anew, in an order of columns that lets the first be read alone.
        migrations.DeleteModel("Standing"),
        migrations.CreateModel(
            name="Standing",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("submission", reference("submission", related_name="standings")),
                *setting(),
                ("attempted", models.PositiveSmallIntegerField()),
                ("made", models.PositiveIntegerField()),
                ("total", models.JSONField()),
                ("solved", models.TextField()),
                ("by_threshold", models.BinaryField()),
                ("by_category", models.JSONField()),
                ("cells", models.TextField()),
                ("kernels", models.TextField()),
                ("outcomes", models.TextField()),
                ("speedups", models.BinaryField()),
            ],
            options={
                "ordering": ("submission_id", *SETTING),
                "indexes": [models.Index(fields=[*SETTING_FIELDS, "submission", "attempted"], name="standing_board")],
                "constraints": [models.UniqueConstraint(fields=("submission", *SETTING_FIELDS), name="standing_once"), models.CheckConstraint(condition=models.Q(("attempted__gte", 1)), name="standing_has_problems")],
            },
        ),
        migrations.CreateModel(
            name="ProblemStanding",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("problem", reference("problem", related_name="standings")),
                *setting(),
                ("submissions", models.PositiveIntegerField()),
                ("solved", models.PositiveIntegerField()),
                ("best_speedup", models.FloatField(null=True)),
                ("utilisation", models.FloatField(null=True)),
                ("usual_utilisation", models.FloatField(null=True)),
                ("run", reference("run", null=True, related_name="+")),
            ],
            options={
                "ordering": ("problem_id", *SETTING),
                "constraints": [
                    models.UniqueConstraint(fields=(*SETTING_FIELDS, "problem"), name="problem_standing_once"),
                    models.CheckConstraint(condition=models.Q(("best_speedup", None), ("solved", 0)) | models.Q(("best_speedup__gt", 0), ("run__isnull", False), ("solved__gte", 1)), name="problem_standing_best_is_solved"),
                    models.CheckConstraint(condition=models.Q(("solved__lte", models.F("submissions"))), name="problem_standing_counts_fit"),
                ],
            },
        ),
        migrations.RunPython(fill, back),
        migrations.RemoveField("summary", "former"),
    ]
