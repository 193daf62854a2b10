"""A submission may lead to a page about it."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("leaderboard", "0014_edited_submissions"),
    ]

    operations = [
        migrations.AddField(
            "submission",
            "link",
            models.CharField(blank=True, default="", max_length=200),
        ),
        migrations.AddConstraint(
            "submission",
            models.CheckConstraint(
                condition=models.Q(link="") | models.Q(link__startswith="https://"),
                name="submission_link_is_https",
            ),
        ),
    ]
