"""The rows that boards read, made of the summary."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models.fields.json import KT

from leaderboard.standings import columns_of
from leaderboard.tallies import Subject, tallies_of

SETTING = ("hardware_id", "world_size", "size", "dtype", "profile", "judge_version")
# Later migrations add others.
COLUMNS = ("attempted", "total", "by_category", "tallies")


def fill(apps, editor):
    alias = editor.connection.alias
    kinds = ("Problem", "Standing", "Submission", "Summary")
    rows = {name: apps.get_model("leaderboard", name).objects.using(alias) for name in kinds}
    scored = rows["Problem"].filter(scored=True)
    subjects = {
        number: Subject(number=number, category=category, source=source or "")
        for number, category, source in scored.values_list(
            "number", "category", KT("payload__source")
        )
    }
    for submission, k in list(rows["Submission"].order_by("pk").values_list("pk", "k")):
        groups = {}
        for row in rows["Summary"].filter(submission=submission).order_by("problem_id"):
            if subject := subjects.get(row.problem_id):
                setting = tuple(getattr(row, name) for name in SETTING)
                groups.setdefault(setting, []).extend(tallies_of(subject, row.attempts))
        for setting, tallies in sorted(groups.items()):
            place = dict(zip(SETTING, setting, strict=True))
            known = {name: value for name, value in columns_of(tallies, k).items() if name in COLUMNS}
            rows["Standing"].create(submission_id=submission, **place, **known)


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
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
