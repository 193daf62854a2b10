"""Runs say in which share of the profiled time nothing ran, as their reports always told."""

import json
import zlib

from django.db import migrations, models
from django.db.models import Q

from leaderboard.migrations._append_only import create, drop

BATCH = 500
LONG = ("report_packed", "needs", "token")


class AddIdle(migrations.AddField):
    """Adds the column before long ones, as SQLite reads a row only as far as it has to: it writes the
    table anew for the constraint that follows."""

    def __init__(self):
        super().__init__("run", "idle", models.FloatField(null=True))

    def deconstruct(self):
        return self.__class__.__name__, [], {}

    def state_forwards(self, app_label, state):
        super().state_forwards(app_label, state)
        fields = state.models[app_label, self.model_name_lower].fields
        for name in LONG:
            fields[name] = fields.pop(name)
        state.reload_model(app_label, self.model_name_lower, delay=True)


def fill(apps, editor):
    runs = apps.get_model("leaderboard", "Run").objects.using(editor.connection.alias)
    told = runs.filter(report_packed__isnull=False).order_by("pk")
    for run in told.only("report_packed").iterator(BATCH):
        timelines = json.loads(zlib.decompress(run.report_packed)).get("timelines", ())
        span_us = sum(one["span_us"] for one in timelines)
        if span_us > 0:
            idle_us = sum(one["idle_us"] for one in timelines)
            runs.filter(pk=run.pk).update(idle=min(1.0, max(0.0, idle_us / span_us)))


class Migration(migrations.Migration):

    dependencies = [
        ("leaderboard", "0080_judge_tests_unlisted"),
    ]

    operations = [
        # A finished run is changed here, for the one time, by what it always told.
        migrations.RunPython(drop, create),
        AddIdle(),
        migrations.AddConstraint(
            "run",
            models.CheckConstraint(condition=Q(idle=None) | Q(idle__gte=0, idle__lte=1), name="run_idle_is_a_share"),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.RunPython(create, drop),
    ]
