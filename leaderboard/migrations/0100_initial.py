"""Makes the schema of release 0.2. Migrations with a number below 0100 were those of 0.1.

The last one of 0.1 left the same tables, so a database where it ran needs no change. `migrate`
refuses an older database (`leaderboard/operations/older_database.py`).

Columns are in the order that they had on SQLite in 0.1, long ones last: SQLite reads a row only up
to the column that it needs. SQLite drops the triggers of a table that a later migration rebuilds:
such a migration must end with `create` of `_append_only`, which a test checks.
"""

import django.db.models.deletion
import django.db.models.fields.json
import django.utils.timezone
import uuid
from django.conf import settings
from django.core.management import call_command
from django.db import migrations, models

from leaderboard.migrations._append_only import create, refuse_deletion

CACHE = "leaderboard_shared_cache"
NEVER_COMPRESSED = ("by_category", "by_threshold", "cells", "outcomes")


def make_cache(apps, editor):
    """Make the table that processes share, which is no model's."""
    call_command("createcachetable", CACHE, database=editor.connection.alias, verbosity=0)


def drop_cache(apps, editor):
    editor.execute(f"DROP TABLE {CACHE}")


def leave_uncompressed(apps, editor):
    """PostgreSQL would take longer to compress these columns than all else to store a result."""
    if editor.connection.vendor == "postgresql":
        changes = ", ".join(f"ALTER COLUMN {name} SET STORAGE EXTERNAL" for name in NEVER_COMPRESSED)
        editor.execute(f"ALTER TABLE leaderboard_leaderboardrow {changes}")


class Migration(migrations.Migration):

    initial = True
    replaces = [('leaderboard', '0095_keys_of_submissions')]

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='ApiToken',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('prefix', models.CharField(max_length=12)),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('scope', models.CharField(choices=[('read', 'Read'), ('submit', 'Submit'), ('worker', 'Worker')], max_length=8)),
                ('name', models.CharField(max_length=80)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField(null=True)),
                ('revoked_at', models.DateTimeField(null=True)),
                ('owner', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='tokens', to=settings.AUTH_USER_MODEL)),
                ('queues', models.JSONField(blank=True, default=list)),
                ('hosts', models.JSONField(blank=True, default=list)),
                ('last_used_at', models.DateTimeField(null=True)),
                ('groups', models.PositiveSmallIntegerField(default=1)),
            ],
            options={
                'ordering': ('-id',),
                'constraints': [models.CheckConstraint(condition=models.Q(('scope__in', ['read', 'submit', 'worker'])), name='token_scope_known'), models.CheckConstraint(condition=models.Q(models.Q(('owner', None), ('scope', 'worker')), models.Q(models.Q(('scope', 'worker'), _negated=True), ('owner__isnull', False)), _connector='OR'), name='token_of_a_worker_has_no_owner')],
            },
        ),
        migrations.CreateModel(
            name='AuditEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(auto_now_add=True)),
                ('action', models.CharField(max_length=64)),
                ('subject', models.CharField(max_length=200)),
                ('detail', models.JSONField(default=dict)),
                ('actor', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name_plural': 'audit entries',
                'ordering': ('-id',),
                'indexes': [models.Index(fields=['subject', '-id'], name='audit_subject')],
            },
        ),
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
            name='Hardware',
            fields=[
                ('slug', models.SlugField(max_length=32, primary_key=True, serialize=False)),
                ('title', models.CharField(max_length=200)),
                ('device', models.CharField(choices=[('cpu', 'cpu'), ('cuda', 'cuda')], max_length=8)),
                ('max_world_size', models.PositiveSmallIntegerField()),
                ('facts', models.JSONField(blank=True, default=dict)),
            ],
            options={
                'verbose_name_plural': 'hardware',
                'ordering': ('slug',),
                'constraints': [models.CheckConstraint(condition=models.Q(('device__in', ['cpu', 'cuda'])), name='hardware_device_known'), models.CheckConstraint(condition=models.Q(('max_world_size__gte', 1), ('max_world_size__lte', 64)), name='hardware_world_size_in_range')],
            },
        ),
        migrations.CreateModel(
            name='Problem',
            fields=[
                ('number', models.PositiveSmallIntegerField(primary_key=True, serialize=False)),
                ('slug', models.CharField(max_length=64, unique=True)),
                ('category', models.CharField(db_index=True, max_length=32)),
                ('category_title', models.CharField(max_length=64)),
                ('title', models.CharField(max_length=200)),
                ('summary', models.TextField()),
                ('digest', models.CharField(max_length=64)),
                ('scored', models.BooleanField()),
                ('unscored_reason', models.TextField(blank=True, null=True)),
                ('payload', models.JSONField()),
                ('source', models.GeneratedField(db_persist=True, expression=django.db.models.fields.json.KeyTextTransform('source', 'payload'), output_field=models.TextField())),
                ('costs', models.GeneratedField(db_persist=True, expression=django.db.models.fields.json.KeyTextTransform('costs', 'payload'), output_field=models.TextField())),
                ('baselines', models.GeneratedField(db_persist=True, expression=django.db.models.fields.json.KeyTextTransform('baselines', 'payload'), output_field=models.TextField())),
                ('ranked_from', models.PositiveSmallIntegerField(default=2)),
                ('ranked_from_reason', models.TextField(blank=True, null=True)),
            ],
            options={
                'ordering': ('number',),
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('scored', True), ('unscored_reason', None)), models.Q(('scored', False), ('unscored_reason__isnull', False), models.Q(('unscored_reason', ''), _negated=True)), _connector='OR'), name='problem_unscored_has_reason')],
            },
        ),
        migrations.CreateModel(
            name='Source',
            fields=[
                ('digest', models.CharField(max_length=64, primary_key=True, serialize=False)),
                ('packed', models.BinaryField(null=True)),
                ('size_bytes', models.PositiveIntegerField()),
                ('repository', models.CharField(blank=True, default='', max_length=200)),
                ('commit', models.CharField(blank=True, default='', max_length=64)),
                ('path', models.CharField(blank=True, default='', max_length=500)),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('packed__isnull', False), models.Q(('repository', ''), ('commit', ''), ('path', ''), _connector='OR', _negated=True), _connector='OR'), name='source_is_somewhere')],
            },
        ),
        migrations.CreateModel(
            name='LanguageModel',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(max_length=80, unique=True)),
                ('name', models.CharField(max_length=80)),
                ('vendor', models.CharField(blank=True, max_length=80)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('is_baseline', models.BooleanField(default=False)),
            ],
            options={
                'ordering': ('name',),
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('slug', ''), _negated=True), models.Q(('name', ''), _negated=True)), name='language_model_has_name')],
            },
        ),
        migrations.CreateModel(
            name='Team',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(max_length=60, unique=True)),
                ('name', models.CharField(max_length=60)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('account', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='team_of', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ('slug',),
            },
        ),
        migrations.CreateModel(
            name='Submission',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('harness', models.CharField(choices=[('zero-shot', 'Zero Shot'), ('repeated', 'Repeated'), ('agentic', 'Agentic'), ('human', 'Human')], max_length=16)),
                ('k', models.PositiveSmallIntegerField()),
                ('step_budget', models.PositiveSmallIntegerField(blank=True, null=True)),
                ('visibility', models.CharField(choices=[('private', 'Private'), ('unlisted', 'Unlisted'), ('public', 'Public')], max_length=16)),
                ('trust', models.CharField(choices=[('self-reported', 'Self Reported'), ('published', 'Published'), ('checked', 'Checked'), ('verified', 'Verified')], default='self-reported', max_length=16)),
                ('moderation', models.CharField(choices=[('accepted', 'Accepted'), ('disputed', 'Disputed'), ('invalidated', 'Invalidated'), ('withdrawn', 'Withdrawn')], default='accepted', max_length=16)),
                ('moderation_reason', models.TextField(blank=True)),
                ('notes', models.TextField(blank=True)),
                ('idempotency_key', models.CharField(max_length=200, null=True)),
                ('request_digest', models.CharField(max_length=64)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('model', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='submissions', to='leaderboard.languagemodel')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='submissions', to=settings.AUTH_USER_MODEL)),
                ('cost_usd', models.FloatField(blank=True, null=True)),
                ('edited_at', models.DateTimeField(blank=True, null=True)),
                ('link', models.CharField(blank=True, default='', max_length=200)),
                ('manifest', models.JSONField(blank=True, default=dict)),
                ('is_practice', models.BooleanField(default=False)),
                ('public_from', models.DateTimeField(blank=True, null=True)),
                ('published_at', models.DateTimeField(blank=True, null=True)),
                ('withdrawn_at', models.DateTimeField(blank=True, null=True)),
                ('team', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='submissions', to='leaderboard.team')),
                ('licence', models.CharField(blank=True, choices=[('Apache-2.0', 'Apache-2.0'), ('MIT', 'MIT'), ('BSD-3-Clause', 'BSD-3-Clause'), ('CC-BY-4.0', 'CC-BY-4.0'), ('CC0-1.0', 'CC0-1.0')], default='', max_length=16)),
                ('withholds_source', models.BooleanField(default=False)),
                ('key', models.CharField(default='', editable=False, max_length=32)),
            ],
            options={
                'ordering': ('-id',),
                'indexes': [models.Index(fields=['visibility', 'moderation'], name='leaderboard_visibil_4d503f_idx'), models.Index(condition=models.Q(('public_from__isnull', False)), fields=['public_from'], name='submission_embargo')],
                'constraints': [models.CheckConstraint(condition=models.Q(('licence__in', ['', 'Apache-2.0', 'MIT', 'BSD-3-Clause', 'CC-BY-4.0', 'CC0-1.0'])), name='submission_licence_known'), models.CheckConstraint(condition=models.Q(('harness__in', ['zero-shot', 'repeated', 'agentic', 'human'])), name='submission_harness_known'), models.CheckConstraint(condition=models.Q(('visibility__in', ['private', 'unlisted', 'public'])), name='submission_visibility_known'), models.CheckConstraint(condition=models.Q(('trust__in', ['self-reported', 'published', 'checked', 'verified'])), name='submission_trust_known'), models.CheckConstraint(condition=models.Q(('moderation__in', ['accepted', 'disputed', 'invalidated', 'withdrawn'])), name='submission_moderation_known'), models.CheckConstraint(condition=models.Q(('k__gte', 1), ('k__lte', 100)), name='submission_k_in_range'), models.CheckConstraint(condition=models.Q(('cost_usd', None), models.Q(('cost_usd__gte', 0), ('cost_usd__lte', 1000000000.0)), _connector='OR'), name='submission_cost_in_range'), models.CheckConstraint(condition=models.Q(('link', ''), ('link__startswith', 'https://'), _connector='OR'), name='submission_link_is_https'), models.CheckConstraint(condition=models.Q(('step_budget', None), models.Q(('harness', 'agentic'), ('step_budget__gte', 1)), _connector='OR'), name='submission_steps_are_agentic'), models.CheckConstraint(condition=models.Q(models.Q(('moderation', 'accepted'), ('moderation_reason', '')), models.Q(models.Q(('moderation', 'accepted'), _negated=True), models.Q(('moderation_reason', ''), _negated=True)), _connector='OR'), name='submission_moderation_has_reason'), models.CheckConstraint(condition=models.Q(('public_from', None), models.Q(('visibility', 'public'), _negated=True), _connector='OR'), name='submission_embargo_is_hidden'), models.CheckConstraint(condition=models.Q(models.Q(('moderation', 'withdrawn'), _negated=True), ('withdrawn_at__isnull', False), _connector='OR'), name='submission_withdrawn_has_date'), models.CheckConstraint(condition=models.Q(('key', ''), _negated=True), name='submission_has_key'), models.CheckConstraint(condition=models.Q(('licence', ''), ('withholds_source', False), _connector='OR'), name='submission_withheld_has_no_licence'), models.UniqueConstraint(fields=('owner', 'idempotency_key'), name='submission_idempotency_key_once')],
            },
        ),
        migrations.CreateModel(
            name='Kernel',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('attempt', models.PositiveSmallIntegerField(default=1)),
                ('step', models.PositiveSmallIntegerField(default=1)),
                ('backend', models.CharField(choices=[('pytorch', 'pytorch'), ('cpp', 'cpp'), ('cuda', 'cuda'), ('triton', 'triton'), ('parallelkittens', 'parallelkittens')], max_length=16)),
                ('problem', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='kernels', to='leaderboard.problem')),
                ('source', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='kernels', to='leaderboard.source')),
                ('submission', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='kernels', to='leaderboard.submission')),
                ('older_task', models.CharField(blank=True, default='', max_length=200)),
            ],
            options={
                'ordering': ('submission_id', 'problem_id', 'attempt', 'step'),
                'constraints': [models.CheckConstraint(condition=models.Q(('backend__in', ['pytorch', 'cpp', 'cuda', 'triton', 'parallelkittens'])), name='kernel_backend_known'), models.UniqueConstraint(fields=('submission', 'problem', 'attempt', 'step'), name='kernel_once'), models.CheckConstraint(condition=models.Q(('attempt__gte', 1), ('attempt__lte', 100), ('step__gte', 1)), name='kernel_attempt_in_range')],
            },
        ),
        migrations.CreateModel(
            name='Run',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('problem_digest', models.CharField(max_length=64)),
                ('world_size', models.PositiveSmallIntegerField()),
                ('size', models.CharField(max_length=32)),
                ('dtype', models.CharField(choices=[('float32', 'float32'), ('bfloat16', 'bfloat16'), ('float16', 'float16')], max_length=16)),
                ('profile', models.CharField(choices=[('upstream', 'upstream'), ('hardened', 'hardened')], max_length=16)),
                ('device', models.CharField(choices=[('cpu', 'cpu'), ('cuda', 'cuda')], max_length=8)),
                ('status', models.CharField(choices=[('queued', 'Queued'), ('running', 'Running'), ('done', 'Done'), ('failed', 'Failed'), ('cancelled', 'Cancelled')], default='queued', max_length=16)),
                ('phase', models.CharField(choices=[('build', 'build'), ('verify', 'verify'), ('timed', 'timed'), ('profile', 'profile'), ('teardown', 'teardown')], max_length=16, null=True)),
                ('progress_done', models.PositiveIntegerField(default=0)),
                ('progress_total', models.PositiveIntegerField(default=0)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('started_at', models.DateTimeField(null=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('rung_at', models.DateTimeField(null=True)),
                ('tries', models.PositiveSmallIntegerField(default=0)),
                ('host', models.CharField(blank=True, max_length=200)),
                ('lease_token', models.CharField(max_length=64, null=True)),
                ('lease_until', models.DateTimeField(null=True)),
                ('cancel_requested', models.BooleanField(default=False)),
                ('last_error', models.TextField(blank=True)),
                ('verdict', models.CharField(choices=[('ok', 'ok'), ('build_error', 'build_error'), ('import_error', 'import_error'), ('missing_entry_point', 'missing_entry_point'), ('runtime_error', 'runtime_error'), ('shape_mismatch', 'shape_mismatch'), ('dtype_mismatch', 'dtype_mismatch'), ('nonfinite_output', 'nonfinite_output'), ('output_mismatch', 'output_mismatch'), ('late_output', 'late_output'), ('input_contract_broken', 'input_contract_broken'), ('host_unsupported', 'host_unsupported'), ('timeout', 'timeout'), ('oom', 'oom'), ('resource_limit', 'resource_limit'), ('protocol_violation', 'protocol_violation'), ('faster_than_light', 'faster_than_light'), ('infra_error', 'infra_error'), ('cancelled', 'cancelled')], max_length=32, null=True)),
                ('message', models.TextField(blank=True)),
                ('cause', models.TextField(null=True)),
                ('evidence', models.TextField(null=True)),
                ('flags', models.JSONField(default=list)),
                ('ranks', models.JSONField(default=list)),
                ('kernel_us', models.FloatField(null=True)),
                ('baseline_us', models.FloatField(null=True)),
                ('speedup', models.FloatField(null=True)),
                ('speedup_low', models.FloatField(null=True)),
                ('speedup_high', models.FloatField(null=True)),
                ('isolation', models.CharField(choices=[('none', 'none'), ('bwrap', 'bwrap'), ('bwrap+cgroup+seccomp', 'bwrap+cgroup+seccomp'), ('vm', 'vm')], max_length=32, null=True)),
                ('judge_version', models.CharField(max_length=32, null=True)),
                ('environment', models.JSONField(null=True)),
                ('hardware', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='leaderboard.hardware')),
                ('kernel', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='leaderboard.kernel')),
                ('bound_us', models.FloatField(null=True)),
                ('limiter', models.CharField(choices=[('wire', 'wire'), ('hbm', 'hbm'), ('flops', 'flops'), ('latency', 'latency')], max_length=16, null=True)),
                ('mechanisms', models.JSONField(default=list)),
                ('utilisation', models.FloatField(null=True)),
                ('placement', models.CharField(choices=[('full', 'full'), ('shared', 'shared')], default='full', max_length=8)),
                ('idle', models.FloatField(null=True)),
                ('report_packed', models.BinaryField(null=True)),
                ('needs', models.CharField(blank=True, default='', max_length=200)),
                ('token', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='leaderboard.apitoken')),
            ],
            options={
                'ordering': ('-created_at', '-id'),
                'indexes': [models.Index(fields=['-created_at', '-id'], name='run_newest'), models.Index(condition=models.Q(('status', 'queued')), fields=['hardware', 'created_at'], name='run_queue'), models.Index(condition=models.Q(('status', 'running')), fields=['lease_until'], name='run_lease'), models.Index(fields=['hardware', 'status', 'finished_at'], name='run_ended'), models.Index(fields=['verdict', '-created_at'], name='run_verdict'), models.Index(fields=['kernel', '-created_at', '-id'], name='run_of_kernel'), models.Index(fields=['placement', '-created_at', '-id'], name='run_placement')],
                'constraints': [models.CheckConstraint(condition=models.Q(('status__in', ['queued', 'running', 'done', 'failed', 'cancelled'])), name='run_status_known'), models.CheckConstraint(condition=models.Q(('verdict__in', ['ok', 'build_error', 'import_error', 'missing_entry_point', 'runtime_error', 'shape_mismatch', 'dtype_mismatch', 'nonfinite_output', 'output_mismatch', 'late_output', 'input_contract_broken', 'host_unsupported', 'timeout', 'oom', 'resource_limit', 'protocol_violation', 'faster_than_light', 'infra_error', 'cancelled'])), name='run_verdict_known'), models.CheckConstraint(condition=models.Q(('phase__in', ['build', 'verify', 'timed', 'profile', 'teardown'])), name='run_phase_known'), models.CheckConstraint(condition=models.Q(('profile__in', ['upstream', 'hardened'])), name='run_profile_known'), models.CheckConstraint(condition=models.Q(('dtype__in', ['float32', 'bfloat16', 'float16'])), name='run_dtype_known'), models.CheckConstraint(condition=models.Q(('device__in', ['cpu', 'cuda'])), name='run_device_known'), models.CheckConstraint(condition=models.Q(('placement__in', ['full', 'shared'])), name='run_placement_known'), models.CheckConstraint(condition=models.Q(('isolation__in', ['none', 'bwrap', 'bwrap+cgroup+seccomp', 'vm'])), name='run_isolation_known'), models.CheckConstraint(condition=models.Q(('limiter__in', ['wire', 'hbm', 'flops', 'latency'])), name='run_limiter_known'), models.CheckConstraint(condition=models.Q(models.Q(('bound_us__isnull', True), ('limiter__isnull', True)), models.Q(('bound_us__gte', 0), ('bound_us__isnull', False), ('limiter__isnull', False)), _connector='OR'), name='run_bound_has_limiter'), models.CheckConstraint(condition=models.Q(('utilisation', None), models.Q(('bound_us__isnull', False), ('kernel_us__isnull', False), ('utilisation__gte', 0)), _connector='OR'), name='run_utilisation_is_of_a_timing'), models.CheckConstraint(condition=models.Q(('idle', None), models.Q(('idle__gte', 0), ('idle__lte', 1)), _connector='OR'), name='run_idle_is_a_share'), models.CheckConstraint(condition=models.Q(('world_size__gte', 2), ('world_size__lte', 64)), name='run_world_size_in_range'), models.CheckConstraint(condition=models.Q(('tries__lte', 3)), name='run_tries_bounded'), models.CheckConstraint(condition=models.Q(('progress_done__lte', models.F('progress_total'))), name='run_progress_fits'), models.CheckConstraint(condition=models.Q(models.Q(('started_at__isnull', False), ('status', 'running'), ('tries__gte', 1), ('lease_token__isnull', False), ('lease_until__isnull', False), models.Q(('host', ''), _negated=True)), models.Q(models.Q(('status', 'running'), _negated=True), ('lease_token', None), ('lease_until', None)), _connector='OR'), name='run_leased_while_running'), models.CheckConstraint(condition=models.Q(models.Q(('finished_at', None), ('report_packed', None), ('status__in', ('queued', 'running')), ('verdict', None)), models.Q(('finished_at__isnull', False), ('verdict__isnull', False), ('isolation__isnull', False), ('report_packed__isnull', False), ('status', 'done'), ('environment__isnull', False), ('judge_version__isnull', False), models.Q(('verdict__in', ('infra_error', 'cancelled')), _negated=True)), models.Q(('finished_at__isnull', False), ('verdict__isnull', False), ('status', 'failed'), ('verdict', 'infra_error')), models.Q(('finished_at__isnull', False), ('verdict__isnull', False), ('status', 'cancelled'), ('verdict', 'cancelled')), _connector='OR'), name='run_verdict_fits_status'), models.CheckConstraint(condition=models.Q(models.Q(('message', ''), ('verdict', None)), models.Q(('verdict__isnull', False), models.Q(('message', ''), _negated=True)), _connector='OR'), name='run_verdict_has_message'), models.CheckConstraint(condition=models.Q(models.Q(('baseline_us__isnull', True), ('kernel_us__isnull', True), ('speedup__isnull', True), ('speedup_high__isnull', True), ('speedup_low__isnull', True), models.Q(('verdict', None), models.Q(('verdict', 'ok'), _negated=True), models.Q(('placement', 'full'), _negated=True), _connector='OR')), models.Q(('baseline_us__isnull', False), ('kernel_us__isnull', False), ('speedup__isnull', False), ('speedup_high__isnull', False), ('speedup_low__isnull', False), ('placement', 'full'), ('verdict__in', ('ok', 'faster_than_light')), ('verdict__isnull', False), ('baseline_us__gt', 0), ('kernel_us__gt', 0), ('speedup_low__gt', 0), ('speedup_low__lte', models.F('speedup')), ('speedup__lte', models.F('speedup_high'))), _connector='OR'), name='run_ok_iff_timed')],
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
            name='DataVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveBigIntegerField(default=1)),
                ('summary_format', models.PositiveIntegerField(default=0)),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('pk', 1)), name='data_version_is_one_row')],
            },
        ),
        migrations.CreateModel(
            name='Decline',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('host', models.CharField(max_length=200)),
                ('reason', models.CharField(max_length=300)),
                ('declined_at', models.DateTimeField()),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='declines', to='leaderboard.run')),
            ],
            options={
                'ordering': ('-declined_at', '-id'),
                'constraints': [models.UniqueConstraint(fields=('host', 'run'), name='decline_once'), models.CheckConstraint(condition=models.Q(models.Q(('host', ''), _negated=True), models.Q(('reason', ''), _negated=True)), name='decline_has_host_and_reason')],
            },
        ),
        migrations.CreateModel(
            name='Notice',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('judged', 'All runs of a submission have ended'), ('failed', 'Some ended without a result, for reasons of ours'), ('disputed', 'Staff dispute a submission'), ('invalidated', 'Staff invalidated a submission'), ('record-lost', 'Another kernel became the fastest for its problem')], max_length=16)),
                ('text', models.CharField(max_length=500)),
                ('once', models.CharField(max_length=80, unique=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('is_spread', models.BooleanField(default=False)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='notices', to=settings.AUTH_USER_MODEL)),
                ('submission', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='notices', to='leaderboard.submission')),
            ],
            options={
                'ordering': ('-id',),
                'indexes': [models.Index(condition=models.Q(('is_spread', False)), fields=['id'], name='notice_new')],
                'constraints': [models.CheckConstraint(condition=models.Q(('kind__in', ['judged', 'failed', 'disputed', 'invalidated', 'record-lost'])), name='notice_kind_known')],
            },
        ),
        migrations.CreateModel(
            name='Delivery',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('channel', models.CharField(choices=[('mail', 'Mail'), ('webhook', 'Webhook')], max_length=8)),
                ('tries', models.PositiveSmallIntegerField(default=0)),
                ('next_at', models.DateTimeField(null=True)),
                ('done_at', models.DateTimeField(null=True)),
                ('notice', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='leaderboard.notice')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('next_at__isnull', False)), fields=['next_at'], name='delivery_due')],
                'constraints': [models.CheckConstraint(condition=models.Q(('channel__in', ['mail', 'webhook'])), name='delivery_channel_known'), models.UniqueConstraint(fields=('notice', 'channel'), name='delivery_once'), models.CheckConstraint(condition=models.Q(('next_at', None), ('done_at', None), _connector='OR'), name='delivery_due_or_done')],
            },
        ),
        migrations.CreateModel(
            name='FoundLanguages',
            fields=[
                ('source', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='found', serialize=False, to='leaderboard.source')),
                ('names', models.CharField(max_length=64)),
            ],
        ),
        migrations.CreateModel(
            name='Invitation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('username', models.CharField(max_length=150)),
                ('role', models.CharField(choices=[('owner', 'Owner'), ('member', 'Member')], max_length=8)),
                ('made_at', models.DateTimeField()),
                ('team', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='invitations', to='leaderboard.team')),
            ],
            options={
                'ordering': ('team_id', 'username'),
                'indexes': [models.Index(fields=['username'], name='invitation_of')],
                'constraints': [models.CheckConstraint(condition=models.Q(('role__in', ['owner', 'member'])), name='invitation_role_known'), models.UniqueConstraint(fields=('team', 'username'), name='invitation_once')],
            },
        ),
        migrations.CreateModel(
            name='JudgeUse',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('hour', models.DateTimeField()),
                ('seconds', models.FloatField(default=0)),
                ('hardware', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, to='leaderboard.hardware')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('hardware', 'hour', 'owner'), name='judge_use_once'), models.CheckConstraint(condition=models.Q(('seconds__gte', 0)), name='judge_use_not_negative')],
            },
        ),
        migrations.CreateModel(
            name='LeaderboardRow',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('submission', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='leaderboard_rows', to='leaderboard.submission')),
                ('hardware', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, to='leaderboard.hardware')),
                ('world_size', models.PositiveSmallIntegerField()),
                ('size', models.CharField(max_length=32)),
                ('dtype', models.CharField(choices=[('float32', 'float32'), ('bfloat16', 'bfloat16'), ('float16', 'float16')], max_length=16)),
                ('profile', models.CharField(choices=[('upstream', 'upstream'), ('hardened', 'hardened')], max_length=16)),
                ('judge_version', models.CharField(max_length=32)),
                ('attempted', models.PositiveSmallIntegerField()),
                ('made', models.PositiveIntegerField()),
                ('digest', models.CharField(max_length=64)),
                ('total', models.TextField()),
                ('solved', models.TextField()),
                ('by_category', models.TextField()),
                ('by_threshold', models.TextField()),
                ('placement', models.CharField(choices=[('full', 'full'), ('shared', 'shared')], default='full', max_length=8)),
                ('cells', models.TextField()),
                ('outcomes', models.TextField()),
            ],
            options={
                'ordering': ('submission_id', 'hardware_id', 'world_size', 'size', 'dtype', 'profile', 'judge_version', 'placement'),
                'indexes': [models.Index(fields=['hardware', 'world_size', 'size', 'dtype', 'profile', 'judge_version', 'placement', 'submission', 'attempted'], name='leaderboard_row_board')],
                'constraints': [models.UniqueConstraint(fields=('submission', 'hardware', 'world_size', 'size', 'dtype', 'profile', 'judge_version', 'placement'), name='leaderboard_row_once'), models.CheckConstraint(condition=models.Q(('attempted__gte', 1)), name='leaderboard_row_has_problems')],
            },
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
            name='Membership',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('role', models.CharField(choices=[('owner', 'Owner'), ('member', 'Member')], max_length=8)),
                ('is_shown', models.BooleanField(default=False)),
                ('since', models.DateTimeField(auto_now_add=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to=settings.AUTH_USER_MODEL)),
                ('team', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to='leaderboard.team')),
            ],
            options={
                'ordering': ('team_id', 'since', 'pk'),
                'constraints': [models.CheckConstraint(condition=models.Q(('role__in', ['owner', 'member'])), name='membership_role_known'), models.UniqueConstraint(fields=('team', 'user'), name='membership_once')],
            },
        ),
        migrations.CreateModel(
            name='NoticeChoice',
            fields=[
                ('owner', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='notice_choice', serialize=False, to=settings.AUTH_USER_MODEL)),
                ('mailed', models.JSONField(default=list)),
                ('webhook', models.CharField(blank=True, default='', max_length=200)),
                ('webhook_salt', models.CharField(blank=True, default='', max_length=64)),
                ('webhook_off', models.CharField(blank=True, default='', max_length=200)),
                ('feed_digest', models.CharField(max_length=64, null=True, unique=True)),
            ],
        ),
        migrations.CreateModel(
            name='ProblemAggregate',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('problem', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='aggregates', to='leaderboard.problem')),
                ('hardware', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, to='leaderboard.hardware')),
                ('world_size', models.PositiveSmallIntegerField()),
                ('size', models.CharField(max_length=32)),
                ('dtype', models.CharField(choices=[('float32', 'float32'), ('bfloat16', 'bfloat16'), ('float16', 'float16')], max_length=16)),
                ('profile', models.CharField(choices=[('upstream', 'upstream'), ('hardened', 'hardened')], max_length=16)),
                ('judge_version', models.CharField(max_length=32)),
                ('submissions', models.PositiveIntegerField()),
                ('solved', models.PositiveIntegerField()),
                ('best_speedup', models.FloatField(null=True)),
                ('utilisation', models.FloatField(null=True)),
                ('usual_utilisation', models.FloatField(null=True)),
                ('run', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='leaderboard.run')),
                ('made', models.PositiveIntegerField()),
                ('correct', models.PositiveIntegerField()),
                ('faster', models.PositiveIntegerField()),
                ('baseline_runs', models.PositiveIntegerField()),
                ('baseline_us', models.FloatField(null=True)),
                ('baseline_low_us', models.FloatField(null=True)),
                ('baseline_high_us', models.FloatField(null=True)),
                ('placement', models.CharField(choices=[('full', 'full'), ('shared', 'shared')], default='full', max_length=8)),
                ('modes', models.JSONField()),
                ('models_solved', models.PositiveIntegerField(default=0)),
                ('models_tried', models.PositiveIntegerField(default=0)),
            ],
            options={
                'ordering': ('problem_id', 'hardware_id', 'world_size', 'size', 'dtype', 'profile', 'judge_version', 'placement'),
                'constraints': [models.UniqueConstraint(fields=('hardware', 'world_size', 'size', 'dtype', 'profile', 'judge_version', 'placement', 'problem'), name='problem_aggregate_once'), models.CheckConstraint(condition=models.Q(models.Q(('best_speedup', None), ('solved', 0)), models.Q(('run__isnull', False), ('solved__gte', 1), models.Q(('best_speedup__gt', 0), models.Q(('best_speedup', None), ('placement', 'shared')), _connector='OR')), _connector='OR'), name='problem_aggregate_best_is_solved'), models.CheckConstraint(condition=models.Q(('solved__lte', models.F('submissions'))), name='problem_aggregate_counts_fit')],
            },
        ),
        migrations.CreateModel(
            name='Publication',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(max_length=64, unique=True)),
                ('citation', models.TextField()),
                ('payload', models.JSONField()),
                ('date', models.CharField(max_length=10, null=True)),
            ],
        ),
        migrations.CreateModel(
            name='PublishedResult',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('harness', models.CharField(choices=[('zero-shot', 'Zero Shot'), ('repeated', 'Repeated'), ('agentic', 'Agentic'), ('human', 'Human')], max_length=16)),
                ('category', models.CharField(max_length=32, null=True)),
                ('problems', models.PositiveSmallIntegerField()),
                ('correct_at_1', models.PositiveSmallIntegerField()),
                ('correct_at_3', models.PositiveSmallIntegerField(null=True)),
                ('fast_at_1', models.PositiveSmallIntegerField()),
                ('fast_at_3', models.PositiveSmallIntegerField(null=True)),
                ('model', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='published', to='leaderboard.languagemodel')),
                ('publication', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='results', to='leaderboard.publication')),
            ],
            options={
                'ordering': ('model__name', 'harness', 'category'),
                'constraints': [models.CheckConstraint(condition=models.Q(('harness__in', ['zero-shot', 'repeated', 'agentic', 'human'])), name='published_harness_known'), models.UniqueConstraint(fields=('publication', 'model', 'harness', 'category'), name='published_once'), models.UniqueConstraint(condition=models.Q(('category', None)), fields=('publication', 'model', 'harness'), name='published_total_once'), models.CheckConstraint(condition=models.Q(('correct_at_1__lte', models.F('problems')), ('fast_at_1__lte', models.F('correct_at_1')), models.Q(('correct_at_3', None), ('correct_at_3__lte', models.F('problems')), _connector='OR')), name='published_counts_fit')],
            },
        ),
        migrations.CreateModel(
            name='RefusedReport',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('host', models.CharField(max_length=200)),
                ('code', models.CharField(max_length=64)),
                ('reason', models.CharField(max_length=1000)),
                ('body', models.TextField()),
                ('refused_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='refused_reports', to='leaderboard.run')),
                ('token', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='leaderboard.apitoken')),
            ],
            options={
                'ordering': ('-refused_at', '-id'),
                'indexes': [models.Index(fields=['-refused_at', '-id'], name='refused_newest')],
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
        migrations.CreateModel(
            name='Snapshot',
            fields=[
                ('tag', models.SlugField(max_length=64, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('data_version', models.PositiveBigIntegerField()),
                ('judge_version', models.CharField(max_length=32)),
                ('files', models.JSONField()),
            ],
            options={
                'ordering': ('-created_at', '-tag'),
                'constraints': [models.CheckConstraint(condition=models.Q(('tag', ''), _negated=True), name='snapshot_has_tag')],
            },
        ),
        migrations.CreateModel(
            name='Summary',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('world_size', models.PositiveSmallIntegerField()),
                ('size', models.CharField(max_length=32)),
                ('dtype', models.CharField(choices=[('float32', 'float32'), ('bfloat16', 'bfloat16'), ('float16', 'float16')], max_length=16)),
                ('profile', models.CharField(choices=[('upstream', 'upstream'), ('hardened', 'hardened')], max_length=16)),
                ('judge_version', models.CharField(max_length=32)),
                ('made', models.PositiveSmallIntegerField()),
                ('correct', models.PositiveSmallIntegerField()),
                ('best_speedup', models.FloatField(null=True)),
                ('best_run', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='leaderboard.run')),
                ('hardware', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, to='leaderboard.hardware')),
                ('problem', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='summaries', to='leaderboard.problem')),
                ('submission', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='summaries', to='leaderboard.submission')),
                ('best_low', models.FloatField(null=True)),
                ('utilisation', models.FloatField(null=True)),
                ('baseline_us', models.FloatField(null=True)),
                ('placement', models.CharField(choices=[('full', 'full'), ('shared', 'shared')], default='full', max_length=8)),
                ('modes', models.JSONField()),
                ('attempts', models.JSONField()),
            ],
            options={
                'verbose_name_plural': 'summaries',
                'ordering': ('submission_id', 'problem_id', 'hardware_id', 'world_size', 'size', 'dtype', 'profile', 'judge_version', 'placement'),
                'indexes': [models.Index(fields=['profile', 'hardware'], name='summary_board'), models.Index(fields=['problem', 'hardware', '-best_speedup'], name='summary_fastest'), models.Index(fields=['problem', 'hardware', 'world_size', 'size', 'dtype', 'profile', 'judge_version', 'placement', 'submission', 'made', 'correct', 'best_speedup', 'best_low', 'utilisation', 'best_run', 'baseline_us', 'modes'], name='summary_aggregate')],
                'constraints': [models.UniqueConstraint(fields=('submission', 'problem', 'hardware', 'world_size', 'size', 'dtype', 'profile', 'judge_version', 'placement'), name='summary_once'), models.CheckConstraint(condition=models.Q(('correct__lte', models.F('made')), ('made__gte', 1)), name='summary_counts_fit'), models.CheckConstraint(condition=models.Q(models.Q(('best_run', None), ('best_speedup', None), ('correct', 0)), models.Q(('best_run__isnull', False), ('correct__gte', 1), models.Q(models.Q(('best_speedup__gt', 0), ('best_speedup__isnull', False)), models.Q(('best_speedup', None), ('placement', 'shared')), _connector='OR')), _connector='OR'), name='summary_best_is_correct')],
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
        migrations.CreateModel(
            name='WorkerHost',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('host', models.CharField(max_length=200)),
                ('queue', models.CharField(max_length=32)),
                ('hardware', models.CharField(max_length=200)),
                ('isolation', models.CharField(choices=[('none', 'none'), ('bwrap', 'bwrap'), ('bwrap+cgroup+seccomp', 'bwrap+cgroup+seccomp'), ('vm', 'vm')], max_length=32)),
                ('judge_version', models.CharField(max_length=32)),
                ('versions', models.JSONField(default=dict)),
                ('first_seen_at', models.DateTimeField(auto_now_add=True)),
                ('last_seen_at', models.DateTimeField()),
                ('token', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='worker_hosts', to='leaderboard.apitoken')),
                ('abilities', models.JSONField(null=True)),
                ('state', models.CharField(choices=[('serving', 'Serving'), ('drained', 'Drained'), ('disabled', 'Disabled')], default='serving', max_length=16)),
                ('title', models.CharField(blank=True, default='', max_length=80)),
            ],
            options={
                'ordering': ('queue', 'host'),
                'constraints': [models.CheckConstraint(condition=models.Q(('isolation__in', ['none', 'bwrap', 'bwrap+cgroup+seccomp', 'vm'])), name='worker_host_isolation_known'), models.CheckConstraint(condition=models.Q(('state__in', ['serving', 'drained', 'disabled'])), name='worker_host_state_known'), models.UniqueConstraint(fields=('host', 'queue'), name='worker_host_once')],
            },
        ),
        migrations.RunPython(create, migrations.RunPython.noop),
        migrations.RunPython(refuse_deletion, migrations.RunPython.noop),
        migrations.RunPython(leave_uncompressed, migrations.RunPython.noop),
        migrations.RunPython(make_cache, drop_cache),
    ]
