"""Unlisted submissions were found by counting: their addresses have a key from now on."""

import secrets

from django.db import migrations, models
from django.db.models import Q

from leaderboard.migrations._append_only import create


def draw(apps, schema_editor):
    submissions = apps.get_model("leaderboard", "Submission").objects
    for pk in submissions.values_list("pk", flat=True):
        submissions.filter(pk=pk).update(key=secrets.token_urlsafe(12))


class Migration(migrations.Migration):

    dependencies = [
        ("leaderboard", "0094_withdrawn_under_embargo"),
    ]

    operations = [
        migrations.AddField(
            "submission", "key", models.CharField(default="", editable=False, max_length=32)
        ),
        migrations.RunPython(draw, migrations.RunPython.noop),
        migrations.AddConstraint(
            "submission",
            models.CheckConstraint(condition=~Q(key=""), name="submission_has_key"),
        ),
        # SQLite rewrites the table without its triggers.
        migrations.RunPython(create, migrations.RunPython.noop),
    ]
