"""Runs say whether each rank has a device of its own, and so do all rows that are made of them. What is
there had; what shares one is checked and has no times.
"""

from django.db import migrations, models
from django.db.models import F, Q

from leaderboard.migrations._append_only import create

SETTING = ("hardware_id", "world_size", "size", "dtype", "profile", "judge_version", "placement")
SETTING_FIELDS = ("hardware", *SETTING[1:])
PLACEMENTS = ("full", "shared")
TRUSTS = {"self-reported": "Self Reported", "published": "Published", "checked": "Checked", "verified": "Verified"}
TIMES = ("kernel_us", "baseline_us", "speedup", "speedup_low", "speedup_high")
NO_TIMES, ALL_TIMES = (Q(**{f"{name}__isnull": known for name in TIMES}) for known in (True, False))
CHECKED = Q(placement="shared", best_speedup=None)
LONG = ("report_packed", "needs", "token", "modes", "attempts", "cells", "outcomes")


class AddPlacement(migrations.AddField):
    """Adds the column before long ones, as SQLite reads a row only as far as it has to: it writes the
    table anew for the constraints that follow."""

    def __init__(self, model_name):
        choices = [(name, name) for name in PLACEMENTS]
        super().__init__(model_name, "placement", models.CharField(choices=choices, default="full", max_length=8))

    def deconstruct(self):
        return self.__class__.__name__, [self.model_name], {}

    def state_forwards(self, app_label, state):
        super().state_forwards(app_label, state)
        fields = state.models[app_label, self.model_name_lower].fields
        for name in LONG:
            if name in fields:
                fields[name] = fields.pop(name)
        state.reload_model(app_label, self.model_name_lower, delay=True)


def replaced(model, *constraints):
    """Put constraints in place of those with the same names."""
    return [
        *(migrations.RemoveConstraint(model, one.name) for one in constraints),
        *(migrations.AddConstraint(model, one) for one in constraints),
    ]


def index(model, name, *fields):
    return [migrations.RemoveIndex(model, name), migrations.AddIndex(model, models.Index(fields=fields, name=name))]


class Migration(migrations.Migration):

    dependencies = [
        ("leaderboard", "0024_empty_sources"),
    ]

    operations = [
        *map(AddPlacement, ("run", "summary", "leaderboardrow", "problemaggregate")),
        migrations.AlterModelOptions("summary", {"ordering": ("submission_id", "problem_id", *SETTING), "verbose_name_plural": "summaries"}),
        migrations.AlterModelOptions("leaderboardrow", {"ordering": ("submission_id", *SETTING)}),
        migrations.AlterModelOptions("problemaggregate", {"ordering": ("problem_id", *SETTING)}),
        migrations.AlterField("submission", "trust", models.CharField(choices=[*TRUSTS.items()], default="self-reported", max_length=16)),
        *replaced("submission", models.CheckConstraint(condition=Q(trust__in=[*TRUSTS]), name="submission_trust_known")),
        *replaced(
            "hardware",
            models.CheckConstraint(condition=Q(max_world_size__gte=1, max_world_size__lte=64), name="hardware_world_size_in_range"),
        ),
        migrations.AddConstraint("run", models.CheckConstraint(condition=Q(placement__in=[*PLACEMENTS]), name="run_placement_known")),
        *replaced(
            "run",
            models.CheckConstraint(
                condition=NO_TIMES & (Q(verdict=None) | ~Q(verdict="ok") | ~Q(placement="full"))
                | ALL_TIMES
                & Q(verdict__isnull=False, verdict__in=("ok", "faster_than_light"), placement="full")
                & Q(kernel_us__gt=0, baseline_us__gt=0)
                & Q(speedup_low__gt=0, speedup_low__lte=F("speedup"))
                & Q(speedup__lte=F("speedup_high")),
                name="run_ok_iff_timed",
            ),
        ),
        migrations.AddIndex("run", models.Index(fields=("placement", "-created_at", "-id"), name="run_placement")),
        *replaced(
            "summary",
            models.UniqueConstraint(fields=("submission", "problem", *SETTING_FIELDS), name="summary_once"),
            models.CheckConstraint(
                condition=Q(correct=0, best_speedup=None, best_run=None)
                | Q(correct__gte=1, best_run__isnull=False) & (Q(best_speedup__isnull=False, best_speedup__gt=0) | CHECKED),
                name="summary_best_is_correct",
            ),
        ),
        *replaced("leaderboardrow", models.UniqueConstraint(fields=("submission", *SETTING_FIELDS), name="leaderboard_row_once")),
        *replaced(
            "problemaggregate",
            models.UniqueConstraint(fields=(*SETTING_FIELDS, "problem"), name="problem_aggregate_once"),
            models.CheckConstraint(
                condition=Q(solved=0, best_speedup=None) | Q(solved__gte=1, run__isnull=False) & (Q(best_speedup__gt=0) | CHECKED),
                name="problem_aggregate_best_is_solved",
            ),
        ),
        *index("leaderboardrow", "leaderboard_row_board", *SETTING_FIELDS, "submission", "attempted"),
        *index(
            *("summary", "summary_aggregate", "problem", *SETTING_FIELDS, "submission", "made", "correct"),
            *("best_speedup", "best_low", "utilisation", "best_run", "baseline_us", "modes"),
        ),
        migrations.RunPython(create, migrations.RunPython.noop),
    ]
