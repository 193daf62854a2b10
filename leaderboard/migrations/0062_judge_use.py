"""The site counts how long kernels of each account were judged; it begins with nothing."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('leaderboard', '0061_moderation'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
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
    ]
