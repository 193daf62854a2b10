"""Cells and speedups of standings, quickly read, and indexes for what is newest. 0007 fills them."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('leaderboard', '0005_standing'),
    ]

    operations = [
        migrations.AddField('standing', 'cells', models.TextField(default=''), preserve_default=False),
        migrations.AddField('standing', 'speedups', models.BinaryField(default=b''), preserve_default=False),
        migrations.AddIndex('run', models.Index(fields=['hardware', 'status', 'finished_at'], name='run_ended')),
        migrations.AddIndex('summary', models.Index(fields=['problem', 'hardware', '-best_speedup'], name='summary_fastest')),
    ]
