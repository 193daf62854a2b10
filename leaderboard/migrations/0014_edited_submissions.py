"""A submission says when what it says of itself was last changed."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("leaderboard", "0013_parts_of_problem_standings"),
    ]

    operations = [
        migrations.AddField(
            "submission", "edited_at", models.DateTimeField(blank=True, null=True)
        ),
    ]
