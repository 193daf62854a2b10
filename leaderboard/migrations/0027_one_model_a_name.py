"""A preview that was a model of its own becomes the model that it is: one page for both names."""

from django.db import migrations

OTHER, SLUG, NAME = "gemini-3-pro-preview", "gemini-3-pro", "Gemini 3 Pro"


def merge(apps, schema_editor):
    models = apps.get_model("leaderboard", "LanguageModel").objects
    other, own = models.filter(slug=OTHER).first(), models.filter(slug=SLUG).first()
    if other is None:
        return
    if own is None:
        models.filter(pk=other.pk).update(slug=SLUG, name=NAME)
        return
    for name in ("Submission", "PublishedResult"):
        apps.get_model("leaderboard", name).objects.filter(model=other).update(model=own)
    models.filter(pk=other.pk).delete()


class Migration(migrations.Migration):

    dependencies = [
        ("leaderboard", "0026_withheld_sources"),
    ]

    operations = [migrations.RunPython(merge, migrations.RunPython.noop)]
