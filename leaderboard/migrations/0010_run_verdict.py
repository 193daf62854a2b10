"""An index for the newest runs with a verdict."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("leaderboard", "0009_dated_claims"),
    ]

    operations = [
        migrations.AddIndex("run", models.Index(fields=["verdict", "-created_at"], name="run_verdict")),
    ]
