"""Parts of problem standings as numbers of fixed width in place of JSON: they are read and written
with each result. They stay the last column, as SQLite reads a row only as far as it has to."""

from django.db import migrations, models


def uncompressed(apps, editor):
    if editor.connection.vendor == "postgresql":
        editor.execute("ALTER TABLE leaderboard_problemstanding ALTER COLUMN packed SET STORAGE EXTERNAL")


class Migration(migrations.Migration):

    dependencies = [
        ("leaderboard", "0018_judged_baselines"),
    ]

    operations = [
        migrations.AddField("problemstanding", "packed", models.BinaryField(default=b""), preserve_default=False),
        migrations.RunPython(uncompressed, migrations.RunPython.noop),
        # With a default, to be added again on the way back.
        migrations.AlterField("problemstanding", "parts", models.TextField(default="[]")),
        migrations.RemoveField("problemstanding", "parts"),
        migrations.RenameField("problemstanding", "packed", "parts"),
    ]
