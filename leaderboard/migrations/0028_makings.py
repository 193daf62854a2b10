"""Stores how kernels were made: usage, cost and transcripts, and the languages found in them."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('leaderboard', '0027_one_model_a_name'),
    ]

    operations = [
        migrations.CreateModel(
            name='FoundLanguages',
            fields=[
                ('source', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='found', serialize=False, to='leaderboard.source')),
                ('names', models.CharField(max_length=64)),
            ],
        ),
        migrations.AddField(
            model_name='submission',
            name='manifest',
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.CreateModel(
            name='Making',
            fields=[
                ('kernel', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='making', serialize=False, to='leaderboard.kernel')),
                ('input_tokens', models.PositiveBigIntegerField(null=True)),
                ('cached_tokens', models.PositiveBigIntegerField(null=True)),
                ('output_tokens', models.PositiveBigIntegerField(null=True)),
                ('reasoning_tokens', models.PositiveBigIntegerField(null=True)),
                ('answers', models.PositiveBigIntegerField(null=True)),
                ('answers_without_usage', models.PositiveBigIntegerField(null=True)),
                ('judge_runs', models.PositiveBigIntegerField(null=True)),
                ('cost_usd', models.FloatField(null=True)),
                ('wall_s', models.FloatField(null=True)),
                ('ended', models.CharField(blank=True, default='', max_length=40)),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('input_tokens', None), models.Q(('input_tokens__gte', 0), ('input_tokens__lte', 1000000000000)), _connector='OR'), name='making_input_tokens_in_range'), models.CheckConstraint(condition=models.Q(('cached_tokens', None), models.Q(('cached_tokens__gte', 0), ('cached_tokens__lte', 1000000000000)), _connector='OR'), name='making_cached_tokens_in_range'), models.CheckConstraint(condition=models.Q(('output_tokens', None), models.Q(('output_tokens__gte', 0), ('output_tokens__lte', 1000000000000)), _connector='OR'), name='making_output_tokens_in_range'), models.CheckConstraint(condition=models.Q(('reasoning_tokens', None), models.Q(('reasoning_tokens__gte', 0), ('reasoning_tokens__lte', 1000000000000)), _connector='OR'), name='making_reasoning_tokens_in_range'), models.CheckConstraint(condition=models.Q(('answers', None), models.Q(('answers__gte', 0), ('answers__lte', 1000000000000)), _connector='OR'), name='making_answers_in_range'), models.CheckConstraint(condition=models.Q(('answers_without_usage', None), models.Q(('answers_without_usage__gte', 0), ('answers_without_usage__lte', 1000000000000)), _connector='OR'), name='making_answers_without_usage_in_range'), models.CheckConstraint(condition=models.Q(('judge_runs', None), models.Q(('judge_runs__gte', 0), ('judge_runs__lte', 1000000000000)), _connector='OR'), name='making_judge_runs_in_range'), models.CheckConstraint(condition=models.Q(('cost_usd', None), models.Q(('cost_usd__gte', 0), ('cost_usd__lte', 1000000000.0)), _connector='OR'), name='making_cost_usd_in_range'), models.CheckConstraint(condition=models.Q(('wall_s', None), models.Q(('wall_s__gte', 0), ('wall_s__lte', 1000000000.0)), _connector='OR'), name='making_wall_s_in_range')],
            },
        ),
        migrations.CreateModel(
            name='Transcript',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('attempt', models.PositiveSmallIntegerField()),
                ('packed', models.BinaryField()),
                ('size_bytes', models.PositiveIntegerField()),
                ('problem', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='leaderboard.problem')),
                ('submission', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='transcripts', to='leaderboard.submission')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('submission', 'problem', 'attempt'), name='transcript_once'), models.CheckConstraint(condition=models.Q(('size_bytes__lte', 1048576)), name='transcript_is_short')],
            },
        ),
    ]
