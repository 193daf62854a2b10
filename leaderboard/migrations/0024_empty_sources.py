"""An empty answer is one: a published tree has such a file, which counts as what it is."""

from django.db import migrations

from leaderboard.migrations._append_only import create


class Migration(migrations.Migration):

    dependencies = [
        ("leaderboard", "0023_ranked_from"),
    ]

    operations = [
        migrations.RemoveConstraint("source", "source_is_not_empty"),
        migrations.RunPython(create, migrations.RunPython.noop),
    ]
