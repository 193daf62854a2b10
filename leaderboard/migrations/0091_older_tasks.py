"""Kernels say how the task differed that they were written for: nothing of those that are there."""

from django.db import migrations, models

from leaderboard.migrations._append_only import create


class Migration(migrations.Migration):

    dependencies = [
        ("leaderboard", "0090_training_and_difficulty"),
    ]

    operations = [
        migrations.AddField(
            "kernel", "older_task", models.CharField(blank=True, default="", max_length=200)
        ),
        # SQLite writes the table anew, without its triggers.
        migrations.RunPython(create, migrations.RunPython.noop),
    ]
