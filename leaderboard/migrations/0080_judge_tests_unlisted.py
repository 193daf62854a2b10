"""Kernels that were written to test the judge are no submission on the board: they are reached by
their address only. What pages read is made anew by this release's format."""

from django.db import migrations

NAME, OWNER = "Hand-written kernels", "pkb"


def unlist(apps, editor):
    submissions = apps.get_model("leaderboard", "Submission").objects
    own = submissions.filter(model__name=NAME, owner__username=OWNER, harness="human")
    own.filter(visibility="public").update(visibility="unlisted")


class Migration(migrations.Migration):

    dependencies = [
        ("leaderboard", "0062_judge_use"),
    ]

    operations = [
        migrations.RunPython(unlist, migrations.RunPython.noop),
    ]
