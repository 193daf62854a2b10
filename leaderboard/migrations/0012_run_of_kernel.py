"""The runs of a kernel by age, in place of the index on its key alone."""

import django.db.models.deletion
from django.db import migrations, models

KEY = "leaderboard_run_kernel_id_64a9971f"


class Migration(migrations.Migration):

    dependencies = [
        ("leaderboard", "0011_totals_as_text"),
    ]

    operations = [
        migrations.AddIndex("run", models.Index(fields=["kernel", "-created_at", "-id"], name="run_of_kernel")),
        # To lose an index SQLite would copy all runs.
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(f"DROP INDEX {KEY}", f"CREATE INDEX {KEY} ON leaderboard_run (kernel_id)"),
            ],
            state_operations=[
                migrations.AlterField("run", "kernel", models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="runs", to="leaderboard.kernel")),
            ],
        ),
    ]
