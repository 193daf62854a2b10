"""Readers complain, staff rule on single results and ban accounts, and nothing deletes the log of it."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from leaderboard.migrations._append_only import allow_deletion, refuse_deletion


class Migration(migrations.Migration):

    dependencies = [
        ('leaderboard', '0060_host_states'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Ban',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('reason', models.TextField(max_length=1000)),
                ('hidden', models.JSONField(default=dict)),
                ('at', models.DateTimeField(auto_now_add=True)),
                ('lifted_at', models.DateTimeField(null=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='bans', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ('-id',),
                'constraints': [models.UniqueConstraint(condition=models.Q(('lifted_at', None)), fields=('user',), name='ban_once_an_account'), models.CheckConstraint(condition=models.Q(('reason', ''), _negated=True), name='ban_has_reason')],
            },
        ),
        migrations.CreateModel(
            name='Complaint',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('text', models.TextField(max_length=1000)),
                ('at', models.DateTimeField(auto_now_add=True)),
                ('state', models.CharField(choices=[('open', 'Open'), ('upheld', 'Upheld'), ('dismissed', 'Dismissed')], default='open', max_length=16)),
                ('note', models.TextField(blank=True, default='', max_length=1000)),
                ('ended_at', models.DateTimeField(null=True)),
                ('by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='complaints', to=settings.AUTH_USER_MODEL)),
                ('ended_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('run', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='complaints', to='leaderboard.run')),
                ('source', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='complaints', to='leaderboard.source')),
                ('submission', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='complaints', to='leaderboard.submission')),
            ],
            options={
                'ordering': ('-id',),
                'indexes': [models.Index(fields=['state', '-id'], name='complaint_queue')],
                'constraints': [models.CheckConstraint(condition=models.Q(('state__in', ['open', 'upheld', 'dismissed'])), name='complaint_state_known'), models.CheckConstraint(condition=models.Q(models.Q(('run', None), ('source', None), ('submission__isnull', False)), models.Q(('run', None), ('source__isnull', False), ('submission', None)), models.Q(('run__isnull', False), ('source', None), ('submission', None)), _connector='OR'), name='complaint_of_one_subject'), models.CheckConstraint(condition=models.Q(models.Q(('ended_at', None), ('state', 'open')), models.Q(models.Q(('state', 'open'), _negated=True), models.Q(('note', ''), _negated=True)), _connector='OR'), name='complaint_ended_with_note'), models.UniqueConstraint(condition=models.Q(('state', 'open')), fields=('by', 'submission'), name='complaint_once_a_submission'), models.UniqueConstraint(condition=models.Q(('state', 'open')), fields=('by', 'source'), name='complaint_once_a_source'), models.UniqueConstraint(condition=models.Q(('state', 'open')), fields=('by', 'run'), name='complaint_once_a_run')],
            },
        ),
        migrations.CreateModel(
            name='Ruling',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('moderation', models.CharField(choices=[('disputed', 'disputed'), ('invalidated', 'invalidated')], max_length=16)),
                ('reason', models.TextField(max_length=1000)),
                ('at', models.DateTimeField(auto_now=True)),
                ('run', models.OneToOneField(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='ruling', to='leaderboard.run')),
                ('source', models.OneToOneField(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='ruling', to='leaderboard.source')),
            ],
            options={
                'ordering': ('-id',),
                'constraints': [models.CheckConstraint(condition=models.Q(('moderation__in', ['disputed', 'invalidated'])), name='ruling_moderation_known'), models.CheckConstraint(condition=models.Q(models.Q(('run', None), ('source__isnull', False)), models.Q(('run__isnull', False), ('source', None)), _connector='OR'), name='ruling_on_one_subject'), models.CheckConstraint(condition=models.Q(('reason', ''), _negated=True), name='ruling_has_reason')],
            },
        ),
        migrations.AddIndex(
            "auditentry", models.Index(fields=["subject", "-id"], name="audit_subject")
        ),
        migrations.RunPython(refuse_deletion, allow_deletion),
    ]
