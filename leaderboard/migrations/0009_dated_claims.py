"""A publication has a date, which `import_published` fills in."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("leaderboard", "0008_problem_attempts"),
    ]

    operations = [
        migrations.AddField("publication", "date", models.CharField(max_length=10, null=True)),
    ]
