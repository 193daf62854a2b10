"""Problems say from how many ranks on results count; the next catalogue does of those there."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("leaderboard", "0022_abilities"),
    ]

    operations = [
        migrations.AddField("problem", "ranked_from", models.PositiveSmallIntegerField(default=2)),
        migrations.AddField("problem", "ranked_from_reason", models.TextField(blank=True, null=True)),
    ]
