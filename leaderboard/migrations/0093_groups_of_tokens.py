"""Tokens of workers say how many runs a host may have at once; those that are there allow eight."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("leaderboard", "0092_withheld_by_submitters"),
    ]

    operations = [
        migrations.AddField("apitoken", "groups", models.PositiveSmallIntegerField(default=8)),
        migrations.AlterField("apitoken", "groups", models.PositiveSmallIntegerField(default=1)),
    ]
