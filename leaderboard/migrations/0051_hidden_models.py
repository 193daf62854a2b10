"""A model of which only private submissions are known has a row for each of their owners, so that
who hands in another of that name learns nothing of it.
"""

import hashlib

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def hide(apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    models, submissions = (
        apps.get_model("leaderboard", name)._default_manager for name in ("LanguageModel", "Submission")
    )
    private = submissions.filter(visibility="private").values("model")
    unknown = models.filter(pk__in=private, published=None, is_baseline=False)
    for model in unknown.exclude(pk__in=submissions.exclude(visibility="private").values("model")):
        digest = hashlib.sha256(model.slug.encode()).hexdigest()[:32]
        for owner_id in set(submissions.filter(model=model).values_list("owner", flat=True)):
            own = models.create(slug=f".{owner_id}.{digest}", name=model.name, vendor=model.vendor)
            submissions.filter(model=model, owner=owner_id).update(model=own)
        model.delete()


class Migration(migrations.Migration):

    dependencies = [
        ("leaderboard", "0050_own_work"),
    ]

    operations = [
        migrations.RunPython(hide, migrations.RunPython.noop),
    ]
