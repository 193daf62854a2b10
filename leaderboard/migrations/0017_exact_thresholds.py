"""fast_p of standings in numbers whose sums are exact, as a rebuild makes them: a result is added to
them now, where all were added up anew."""

from django.db import migrations

from leaderboard.metrics import thresholds
from leaderboard.read_model.cell_columns import unpack_results


def repack(apps, editor):
    standings = apps.get_model("leaderboard", "Standing").objects.using(editor.connection.alias)
    for pk, k in list(standings.values_list("pk", "submission__k")):
        row = standings.filter(pk=pk)
        results = unpack_results(*row.values_list("cells", "speedups").get())
        row.update(by_threshold=thresholds.pack(results, k))


class Migration(migrations.Migration):
    dependencies = [
        ("leaderboard", "0016_fewer_indexes"),
    ]

    operations = [
        migrations.RunPython(repack, migrations.RunPython.noop),
    ]
