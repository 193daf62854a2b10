"""Notices for owners of submissions, how each wants them, and what was sent."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("leaderboard", "0051_hidden_models"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="NoticeChoice",
            fields=[
                (
                    "owner",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="notice_choice",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("mailed", models.JSONField(default=list)),
                ("webhook", models.CharField(blank=True, default="", max_length=200)),
                ("webhook_salt", models.CharField(blank=True, default="", max_length=64)),
                ("webhook_off", models.CharField(blank=True, default="", max_length=200)),
                ("feed_digest", models.CharField(max_length=64, null=True, unique=True)),
            ],
        ),
        migrations.CreateModel(
            name="Notice",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("judged", "All runs of a submission have ended"),
                            ("failed", "Some ended without a result, for reasons of ours"),
                            ("disputed", "Staff dispute a submission"),
                            ("invalidated", "Staff invalidated a submission"),
                            ("record-lost", "Another kernel became the fastest for its problem"),
                        ],
                        max_length=16,
                    ),
                ),
                ("text", models.CharField(max_length=500)),
                ("once", models.CharField(max_length=80, unique=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("is_spread", models.BooleanField(default=False)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notices",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "submission",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="notices",
                        to="leaderboard.submission",
                    ),
                ),
            ],
            options={
                "ordering": ("-id",),
            },
        ),
        migrations.CreateModel(
            name="Delivery",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "channel",
                    models.CharField(choices=[("mail", "Mail"), ("webhook", "Webhook")], max_length=8),
                ),
                ("tries", models.PositiveSmallIntegerField(default=0)),
                ("next_at", models.DateTimeField(null=True)),
                ("done_at", models.DateTimeField(null=True)),
                (
                    "notice",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="leaderboard.notice",
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="notice",
            index=models.Index(condition=models.Q(("is_spread", False)), fields=["id"], name="notice_new"),
        ),
        migrations.AddConstraint(
            model_name="notice",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("kind__in", ["judged", "failed", "disputed", "invalidated", "record-lost"])
                ),
                name="notice_kind_known",
            ),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(
                condition=models.Q(("next_at__isnull", False)), fields=["next_at"], name="delivery_due"
            ),
        ),
        migrations.AddConstraint(
            model_name="delivery",
            constraint=models.CheckConstraint(
                condition=models.Q(("channel__in", ["mail", "webhook"])), name="delivery_channel_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="delivery",
            constraint=models.UniqueConstraint(fields=("notice", "channel"), name="delivery_once"),
        ),
        migrations.AddConstraint(
            model_name="delivery",
            constraint=models.CheckConstraint(
                condition=models.Q(("next_at", None), ("done_at", None), _connector="OR"),
                name="delivery_due_or_done",
            ),
        ),
    ]
