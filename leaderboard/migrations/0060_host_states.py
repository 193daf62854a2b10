"""Staff drain, disable and rename hosts. Those that are there serve, under their own names."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("leaderboard", "0053_teams"),
    ]

    operations = [
        migrations.AddField(
            "workerhost",
            "state",
            models.CharField(
                choices=[
                    ("serving", "Serving"),
                    ("drained", "Drained"),
                    ("disabled", "Disabled"),
                ],
                default="serving",
                max_length=16,
            ),
        ),
        migrations.AddField(
            "workerhost", "title", models.CharField(blank=True, default="", max_length=80)
        ),
        migrations.AddConstraint(
            "workerhost",
            models.CheckConstraint(
                condition=models.Q(state__in=["serving", "drained", "disabled"]),
                name="worker_host_state_known",
            ),
        ),
    ]
