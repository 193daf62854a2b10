"""Totals of standings as the text that pages read."""

from django.db import migrations, models


class ToText(migrations.AlterField):
    """SQLite keeps JSON as text already, and would put a column that it alters behind the longest,
    which it then had to read on the way."""

    def database_forwards(self, app_label, editor, before, after):
        if editor.connection.vendor != "sqlite":
            super().database_forwards(app_label, editor, before, after)

    def database_backwards(self, app_label, editor, before, after):
        self.database_forwards(app_label, editor, before, after)


class Migration(migrations.Migration):
    dependencies = [
        ("leaderboard", "0010_run_verdict"),
    ]

    operations = [
        ToText("standing", "total", models.TextField()),
        ToText("standing", "by_category", models.TextField()),
    ]
