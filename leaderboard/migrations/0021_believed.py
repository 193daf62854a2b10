"""Tokens of workers are bound to queues and hosts, runs remember whose they were, and reports that were
not believed are kept. Tokens that are there stay good for everything.
"""

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

from leaderboard.migrations._append_only import create


def token(**more):
    return models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to="leaderboard.apitoken", **more)


class Migration(migrations.Migration):

    dependencies = [
        ("leaderboard", "0020_plain_columns"),
    ]

    operations = [
        migrations.AddField("apitoken", "queues", models.JSONField(blank=True, default=list)),
        migrations.AddField("apitoken", "hosts", models.JSONField(blank=True, default=list)),
        migrations.AddField("run", "token", token(db_index=False, null=True, related_name="+")),
        migrations.AddField("workerhost", "token", token(null=True, related_name="worker_hosts")),
        migrations.CreateModel(
            name="RefusedReport",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("host", models.CharField(max_length=200)),
                ("code", models.CharField(max_length=64)),
                ("reason", models.CharField(max_length=1000)),
                ("body", models.TextField()),
                ("refused_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("run", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="refused_reports", to="leaderboard.run")),
                ("token", token(related_name="+")),
            ],
            options={
                "ordering": ("-refused_at", "-id"),
                "indexes": [models.Index(fields=["-refused_at", "-id"], name="refused_newest")],
            },
        ),
        migrations.RunPython(create, migrations.RunPython.noop),
    ]
