"""Indexes that nobody reads were written with each result."""

import django.db.models.deletion
from django.db import migrations, models

KEYS = {
    ("summary", "submission"): "leaderboard_summary_submission_id_a52c191a",
    ("summary", "problem"): "leaderboard_summary_problem_id_54ba5ef1",
    ("summary", "hardware"): "leaderboard_summary_hardware_id_a6162ed4",
    ("summary", "best_run"): "leaderboard_summary_best_run_id_546f35a0",
    ("standing", "submission"): "leaderboard_standing_submission_id_c8418d4d",
    ("standing", "hardware"): "leaderboard_standing_hardware_id_7e25526c",
    ("problemstanding", "hardware"): "leaderboard_problemstanding_hardware_id_f9885463",
    ("problemstanding", "run"): "leaderboard_problemstanding_run_id_d7a4ddf7",
}
TO = {"submission": "submission", "problem": "problem", "hardware": "hardware", "best_run": "run", "run": "run"}
NAMES = {
    ("summary", "submission"): "summaries",
    ("summary", "problem"): "summaries",
    ("standing", "submission"): "standings",
    ("summary", "best_run"): "+",
    ("problemstanding", "run"): "+",
}


def without_index(model, name):
    """In place: SQLite would copy the table and put the column behind the longest."""
    options = {"null": True} if TO[name] == "run" else {}
    if (model, name) in NAMES:
        options["related_name"] = NAMES[model, name]
    key = models.ForeignKey(
        db_index=False, on_delete=django.db.models.deletion.PROTECT, to=f"leaderboard.{TO[name]}", **options
    )
    index = KEYS[model, name]
    make = f"CREATE INDEX {index} ON leaderboard_{model} ({name}_id)"
    return migrations.SeparateDatabaseAndState(
        database_operations=[
            migrations.RunSQL(f"DROP INDEX {index}", make),
            migrations.RunSQL(f"DROP INDEX IF EXISTS {index}_like", migrations.RunSQL.noop),
        ],
        state_operations=[migrations.AlterField(model, name, key)],
    )


class Migration(migrations.Migration):
    dependencies = [
        ("leaderboard", "0015_links_of_submissions"),
    ]

    operations = [without_index(*key) for key in KEYS]
