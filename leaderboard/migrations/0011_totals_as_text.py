"""Totals of standings as the text that pages read, in the bytes that a rebuild writes."""

import json

import orjson
from django.db import migrations, models


class ToText(migrations.AlterField):
    """SQLite keeps JSON as text already, and would put a column that it alters behind the longest,
    which it then had to read on the way."""

    def database_forwards(self, app_label, editor, before, after):
        if editor.connection.vendor != "sqlite":
            super().database_forwards(app_label, editor, before, after)

    def database_backwards(self, app_label, editor, before, after):
        self.database_forwards(app_label, editor, before, after)


def tidy(apps, editor):
    standings = apps.get_model("leaderboard", "Standing").objects.using(editor.connection.alias)
    rows = standings.order_by("pk").values_list("pk", "total", "by_category")
    for pk, total, by_category in list(rows):
        sorted_ = dict(sorted(json.loads(by_category).items()))
        standings.filter(pk=pk).update(total=_text(json.loads(total)), by_category=_text(sorted_))


def _text(value):
    return orjson.dumps(value).decode()


class Migration(migrations.Migration):
    dependencies = [
        ("leaderboard", "0010_run_verdict"),
    ]

    operations = [
        ToText("standing", "total", models.TextField()),
        ToText("standing", "by_category", models.TextField()),
        migrations.RunPython(tidy, migrations.RunPython.noop),
    ]
