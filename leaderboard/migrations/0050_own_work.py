"""A submission can be withdrawn by its owner, and be hidden until a date."""

from django.db import migrations, models
from django.db.models import Q

WORDS = ("accepted", "disputed", "invalidated", "withdrawn")


class Migration(migrations.Migration):

    dependencies = [
        ("leaderboard", "0040_shared_cache"),
    ]

    operations = [
        migrations.RemoveConstraint("submission", "submission_moderation_known"),
        *(
            migrations.AddField("submission", name, models.DateTimeField(blank=True, null=True))
            for name in ("public_from", "published_at", "withdrawn_at")
        ),
        migrations.AlterField(
            "submission",
            "moderation",
            models.CharField(
                choices=[(word, word.capitalize()) for word in WORDS], default="accepted", max_length=16
            ),
        ),
        migrations.AddIndex(
            "submission",
            models.Index(
                condition=Q(public_from__isnull=False), fields=["public_from"], name="submission_embargo"
            ),
        ),
        migrations.AddConstraint(
            "submission",
            models.CheckConstraint(
                condition=Q(moderation__in=list(WORDS)), name="submission_moderation_known"
            ),
        ),
        migrations.AddConstraint(
            "submission",
            models.CheckConstraint(
                condition=Q(public_from=None) | ~Q(visibility="public"),
                name="submission_embargo_is_hidden",
            ),
        ),
        migrations.AddConstraint(
            "submission",
            models.CheckConstraint(
                condition=~Q(moderation="withdrawn")
                | Q(withdrawn_at__isnull=False, public_from=None),
                name="submission_withdrawn_has_date",
            ),
        ),
    ]
