"""What is withdrawn after it has been judged stays under its embargo, and becomes public then."""

from django.db import migrations, models
from django.db.models import Q

from leaderboard.migrations._append_only import create

NAME = "submission_withdrawn_has_date"
DATED = ~Q(moderation="withdrawn") | Q(withdrawn_at__isnull=False)


class Migration(migrations.Migration):

    dependencies = [
        ("leaderboard", "0093_groups_of_tokens"),
    ]

    operations = [
        migrations.RemoveConstraint("submission", NAME),
        migrations.AddConstraint("submission", models.CheckConstraint(condition=DATED, name=NAME)),
        # SQLite writes the table anew, without any triggers that it may have.
        migrations.RunPython(create, migrations.RunPython.noop),
    ]
