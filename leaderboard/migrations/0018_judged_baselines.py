"""What the reference took beside kernels, in summaries and standings of problems. `parts` stays the
last column, as SQLite reads a row only as far as it has to."""

from django.db import migrations, models


def uncompressed(apps, editor):
    if editor.connection.vendor == "postgresql":
        editor.execute("ALTER TABLE leaderboard_problemstanding ALTER COLUMN parts SET STORAGE EXTERNAL")


class Migration(migrations.Migration):

    dependencies = [
        ("leaderboard", "0017_exact_thresholds"),
    ]

    operations = [
        migrations.RunPython(migrations.RunPython.noop, uncompressed),
        # With a default, to be added again on the way back.
        migrations.AlterField("problemstanding", "parts", models.TextField(default="[]")),
        migrations.RemoveField("problemstanding", "parts"),
        migrations.AddField("problemstanding", "baseline_runs", models.PositiveIntegerField(default=0), preserve_default=False),
        migrations.AddField("problemstanding", "baseline_us", models.FloatField(null=True)),
        migrations.AddField("problemstanding", "baseline_low_us", models.FloatField(null=True)),
        migrations.AddField("problemstanding", "baseline_high_us", models.FloatField(null=True)),
        migrations.AddField("problemstanding", "parts", models.TextField(default="[]"), preserve_default=False),
        migrations.RunPython(uncompressed, migrations.RunPython.noop),
    ]
