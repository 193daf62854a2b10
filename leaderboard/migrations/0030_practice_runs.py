"""Submissions can be practice: judged, and counted nowhere. Those that are there are not."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("leaderboard", "0028_makings"),
    ]

    operations = [
        migrations.AddField("submission", "is_practice", models.BooleanField(default=False)),
    ]
