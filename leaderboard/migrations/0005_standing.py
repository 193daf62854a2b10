"""The rows that boards read. 0007 makes them of the summary."""

import django.db.models.deletion
from django.db import migrations, models

class Migration(migrations.Migration):

    dependencies = [
        ('leaderboard', '0004_what_reports_tell'),
    ]

    operations = [
        migrations.CreateModel(
            name='Standing',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('world_size', models.PositiveSmallIntegerField()),
                ('size', models.CharField(max_length=32)),
                ('dtype', models.CharField(choices=[('float32', 'float32'), ('bfloat16', 'bfloat16'), ('float16', 'float16')], max_length=16)),
                ('profile', models.CharField(choices=[('upstream', 'upstream'), ('hardened', 'hardened')], max_length=16)),
                ('judge_version', models.CharField(max_length=32)),
                ('attempted', models.PositiveSmallIntegerField()),
                ('total', models.JSONField()),
                ('by_category', models.JSONField()),
                ('tallies', models.BinaryField()),
                ('hardware', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to='leaderboard.hardware')),
                ('submission', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='standings', to='leaderboard.submission')),
            ],
            options={
                'ordering': ('submission_id', 'hardware_id', 'world_size', 'size', 'dtype', 'profile', 'judge_version'),
                'constraints': [models.UniqueConstraint(fields=('submission', 'hardware', 'world_size', 'size', 'dtype', 'profile', 'judge_version'), name='standing_once'), models.CheckConstraint(condition=models.Q(('attempted__gte', 1)), name='standing_has_problems')],
            },
        ),
    ]
