"""What stored reports tell besides times becomes columns of runs."""

import json
import zlib

from django.conf import settings
from django.db import migrations, models

from leaderboard.migrations._append_only import create, drop

BATCH = 500
FLOORS = ("wire", "hbm", "flops", "latency")


def fill_runs(apps, editor):
    runs = apps.get_model("leaderboard", "Run").objects.using(editor.connection.alias)
    told = runs.filter(report_packed__isnull=False).order_by("pk")
    for run in told.only("kernel_us", "report_packed").iterator(BATCH):
        report = json.loads(zlib.decompress(run.report_packed))
        floors = report.get("floors")
        values = {"mechanisms": sorted({found["tag"] for found in report.get("mechanisms", ())})}
        if floors:
            limiter = max(FLOORS, key=lambda name: floors[f"{name}_us"])
            values |= {"limiter": limiter, "bound_us": floors[f"{limiter}_us"]}
            if run.kernel_us:
                values["utilisation"] = values["bound_us"] / run.kernel_us
        if floors or values["mechanisms"]:
            runs.filter(pk=run.pk).update(**values)


class Migration(migrations.Migration):

    dependencies = [
        ('leaderboard', '0003_decline'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        # A finished run is changed here, for the one time, by what it always told.
        migrations.RunPython(drop, create),
        migrations.CreateModel(
            name='Snapshot',
            fields=[
                ('tag', models.SlugField(max_length=64, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('data_version', models.PositiveBigIntegerField()),
                ('judge_version', models.CharField(max_length=32)),
                ('files', models.JSONField()),
            ],
            options={
                'ordering': ('-created_at', '-tag'),
            },
        ),
        migrations.AddField(
            model_name='languagemodel',
            name='is_baseline',
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name='run',
            name='bound_us',
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name='run',
            name='limiter',
            field=models.CharField(choices=[('wire', 'wire'), ('hbm', 'hbm'), ('flops', 'flops'), ('latency', 'latency')], max_length=16, null=True),
        ),
        migrations.AddField(
            model_name='run',
            name='mechanisms',
            field=models.JSONField(default=list),
        ),
        migrations.AddField(
            model_name='run',
            name='utilisation',
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name='submission',
            name='cost_usd',
            field=models.FloatField(blank=True, null=True),
        ),
        migrations.AddConstraint(
            model_name='run',
            constraint=models.CheckConstraint(condition=models.Q(('limiter__in', ['wire', 'hbm', 'flops', 'latency'])), name='run_limiter_known'),
        ),
        migrations.AddConstraint(
            model_name='run',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('bound_us__isnull', True), ('limiter__isnull', True)), models.Q(('bound_us__gte', 0), ('bound_us__isnull', False), ('limiter__isnull', False)), _connector='OR'), name='run_bound_has_limiter'),
        ),
        migrations.AddConstraint(
            model_name='run',
            constraint=models.CheckConstraint(condition=models.Q(('utilisation', None), models.Q(('bound_us__isnull', False), ('kernel_us__isnull', False), ('utilisation__gte', 0)), _connector='OR'), name='run_utilisation_is_of_a_timing'),
        ),
        migrations.AddConstraint(
            model_name='submission',
            constraint=models.CheckConstraint(condition=models.Q(('cost_usd', None), models.Q(('cost_usd__gte', 0), ('cost_usd__lte', 1000000000.0)), _connector='OR'), name='submission_cost_in_range'),
        ),
        migrations.AddConstraint(
            model_name='snapshot',
            constraint=models.CheckConstraint(condition=models.Q(('tag', ''), _negated=True), name='snapshot_has_tag'),
        ),
        migrations.RunPython(fill_runs, migrations.RunPython.noop),
        migrations.RunPython(create, drop),
    ]
