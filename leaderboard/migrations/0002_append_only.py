"""Finished runs, kernels, sources and audit entries cannot be changed, whoever asks the database.

SQLite drops triggers with the table that a later migration rebuilds: such a migration must end with
`append_only.create` again. A test holds the promise, whatever migrations do.
"""

from django.db import migrations

from leaderboard.migrations._append_only import create, drop


class Migration(migrations.Migration):
    dependencies = [("leaderboard", "0001_initial")]
    operations = [migrations.RunPython(create, drop)]
