"""What boards and lists of problems add up, for `migrate` to fill at its end."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models.fields.json import KT

SETTING = ("hardware_id", "world_size", "size", "dtype", "profile", "judge_version")
SETTING_FIELDS = ("hardware", *SETTING[1:])
DTYPES = [(name, name) for name in ("float32", "bfloat16", "float16")]
PROFILES = [(name, name) for name in ("upstream", "hardened")]


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
        migrations.RemoveField("summary", "former"),
    ]
