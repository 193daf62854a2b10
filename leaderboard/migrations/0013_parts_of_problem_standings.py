"""Standings of problems hold what each submission adds to them, so that a result need not read the
summaries of all. PostgreSQL compresses nothing of standings: that took most of the time in which it
stored a result, and saves a quarter."""

from django.db import migrations, models

PACKED = {
    "standing": ("by_threshold", "by_category", "cells", "kernels", "outcomes", "speedups"),
    "problemstanding": ("parts",),
}


def uncompressed(apps, editor):
    _store(editor, "EXTERNAL")


def compressed(apps, editor):
    _store(editor, "EXTENDED")


def _store(editor, how):
    if editor.connection.vendor == "postgresql":
        for table, columns in PACKED.items():
            changes = ", ".join(f"ALTER COLUMN {name} SET STORAGE {how}" for name in columns)
            editor.execute(f"ALTER TABLE leaderboard_{table} {changes}")


class Migration(migrations.Migration):

    dependencies = [
        ("leaderboard", "0012_run_of_kernel"),
    ]

    operations = [
        migrations.AddField("problemstanding", "parts", models.TextField(default="[]"), preserve_default=False),
        migrations.RunPython(uncompressed, compressed),
    ]
