"""A source that is not ours to show is not held: its row says where it can be fetched, until somebody
fills its text in.
"""

from django.db import migrations, models
from django.db.models import Q

from leaderboard.migrations._append_only import create

ORIGIN = (("repository", 200), ("commit", 64), ("path", 500))
NAMED = ~(Q(repository="") | Q(commit="") | Q(path=""))


class Migration(migrations.Migration):

    dependencies = [
        ("leaderboard", "0025_placement"),
    ]

    operations = [
        *(
            migrations.AddField("source", name, models.CharField(blank=True, default="", max_length=length))
            for name, length in ORIGIN
        ),
        migrations.AlterField("source", "packed", models.BinaryField(null=True)),
        migrations.AddConstraint(
            "source",
            models.CheckConstraint(condition=Q(packed__isnull=False) | NAMED, name="source_is_somewhere"),
        ),
        migrations.RunPython(create, migrations.RunPython.noop),
    ]
