"""Submissions may withhold their source from the public: none of those that are there does."""

from django.db import migrations, models
from django.db.models import Q

from leaderboard.migrations._append_only import create


class Migration(migrations.Migration):

    dependencies = [
        ("leaderboard", "0091_older_tasks"),
    ]

    operations = [
        migrations.AddField("submission", "withholds_source", models.BooleanField(default=False)),
        migrations.AddConstraint(
            "submission",
            models.CheckConstraint(
                condition=Q(licence="") | Q(withholds_source=False),
                name="submission_withheld_has_no_licence",
            ),
        ),
        # SQLite writes the table anew, without any triggers that it may have.
        migrations.RunPython(create, migrations.RunPython.noop),
    ]
