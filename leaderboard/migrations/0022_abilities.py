"""Hosts tell what they can do, and runs what they need: both unknown of those that are there."""

from django.db import migrations, models

from leaderboard.migrations._append_only import create


class Migration(migrations.Migration):

    dependencies = [
        ("leaderboard", "0021_believed"),
    ]

    operations = [
        migrations.AddField("workerhost", "abilities", models.JSONField(null=True)),
        migrations.AddField("run", "needs", models.CharField(blank=True, default="", max_length=200)),
        migrations.RunPython(create, migrations.RunPython.noop),
    ]
