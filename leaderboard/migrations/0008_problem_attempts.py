"""Standings of problems count attempts, those of problems that are not scored too."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("leaderboard", "0007_totals"),
    ]

    operations = [
        migrations.AddField("problemstanding", "made", models.PositiveIntegerField(default=0), preserve_default=False),
        migrations.AddField("problemstanding", "correct", models.PositiveIntegerField(default=0), preserve_default=False),
        migrations.AddField("problemstanding", "faster", models.PositiveIntegerField(default=0), preserve_default=False),
        migrations.AddField("problemstanding", "modes", models.JSONField(default=list), preserve_default=False),
    ]
