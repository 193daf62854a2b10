"""Tokens say when they were last used, and processes share a cache, a table that is no model's."""

from django.core.management import call_command
from django.db import migrations, models

TABLE = "leaderboard_shared_cache"


def make_table(apps, schema_editor):
    call_command("createcachetable", TABLE, database=schema_editor.connection.alias, verbosity=0)


class Migration(migrations.Migration):

    dependencies = [
        ("leaderboard", "0030_practice_runs"),
    ]

    operations = [
        migrations.AddField("apitoken", "last_used_at", models.DateTimeField(null=True)),
        migrations.RunPython(make_table, migrations.RunPython.noop),
    ]
