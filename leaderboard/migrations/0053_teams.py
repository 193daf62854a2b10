"""People who hand in together: teams, their members, who is invited."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("leaderboard", "0052_notices"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Team",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("slug", models.SlugField(max_length=60, unique=True)),
                ("name", models.CharField(max_length=60)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "account",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="team_of",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ("slug",),
            },
        ),
        migrations.AddField(
            model_name="submission",
            name="team",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="submissions",
                to="leaderboard.team",
            ),
        ),
        migrations.CreateModel(
            name="Membership",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("role", models.CharField(choices=[("owner", "Owner"), ("member", "Member")], max_length=8)),
                ("is_shown", models.BooleanField(default=False)),
                ("since", models.DateTimeField(auto_now_add=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to="leaderboard.team",
                    ),
                ),
            ],
            options={
                "ordering": ("team_id", "since", "pk"),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("role__in", ["owner", "member"])), name="membership_role_known"
                    ),
                    models.UniqueConstraint(fields=("team", "user"), name="membership_once"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Invitation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("username", models.CharField(max_length=150)),
                ("role", models.CharField(choices=[("owner", "Owner"), ("member", "Member")], max_length=8)),
                ("made_at", models.DateTimeField()),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="invitations",
                        to="leaderboard.team",
                    ),
                ),
            ],
            options={
                "ordering": ("team_id", "username"),
                "indexes": [models.Index(fields=["username"], name="invitation_of")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("role__in", ["owner", "member"])), name="invitation_role_known"
                    ),
                    models.UniqueConstraint(fields=("team", "username"), name="invitation_once"),
                ],
            },
        ),
    ]
