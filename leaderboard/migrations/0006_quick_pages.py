"""Cells and speedups of standings, quickly read, and indexes for what is newest."""

from django.db import migrations, models

from leaderboard.standings import columns_of, unpack


def fill(apps, editor):
    rows = apps.get_model("leaderboard", "Standing").objects.using(editor.connection.alias)
    for pk, k in list(rows.order_by("pk").values_list("pk", "submission__k")):
        own = rows.filter(pk=pk)
        tallies = unpack(own.values_list("tallies", flat=True).get())
        own.update(**columns_of(tallies, k))


class Migration(migrations.Migration):

    dependencies = [
        ('leaderboard', '0005_standing'),
    ]

    operations = [
        migrations.AddField('standing', 'cells', models.TextField(default=''), preserve_default=False),
        migrations.AddField('standing', 'speedups', models.BinaryField(default=b''), preserve_default=False),
        migrations.AddIndex('run', models.Index(fields=['hardware', 'status', 'finished_at'], name='run_ended')),
        migrations.AddIndex('summary', models.Index(fields=['problem', 'hardware', '-best_speedup'], name='summary_fastest')),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
