"""Parts of problem standings as numbers of fixed width in place of JSON: they are read and written
with each result. They stay the last column, as SQLite reads a row only as far as it has to."""

import json
import math
from array import array
from uuid import UUID

from django.db import migrations, models

# Type code and items of each field; JSON has the same fields in the same order.
TYPES = tuple(zip("qBHHdddBHd", (1, 1, 1, 1, 1, 1, 1, 16, 7, 1)))
RUN, MODES = 7, 8
NO_RUN = bytes(16)


def pack(apps, editor):
    standings = apps.get_model("leaderboard", "ProblemStanding").objects.using(editor.connection.alias)
    for pk, text in list(standings.values_list("pk", "parts")):
        columns = [array(code) for code, _ in TYPES]
        for part in json.loads(text):
            for place, (column, value) in enumerate(zip(columns, part)):
                column.extend(_items(place, value))
        standings.filter(pk=pk).update(packed=b"".join(column.tobytes() for column in columns))


def _items(place, value):
    if place == RUN:
        return UUID(value).bytes if value else NO_RUN
    if place == MODES:
        return value
    return [math.nan if value is None else value]


def unpack(apps, editor):
    standings = apps.get_model("leaderboard", "ProblemStanding").objects.using(editor.connection.alias)
    record = sum(array(code).itemsize * width for code, width in TYPES)
    for pk, packed in list(standings.values_list("pk", "packed")):
        count, start, columns = len(packed) // record, 0, []
        for place, (code, width) in enumerate(TYPES):
            column = array(code)
            end = start + count * width * column.itemsize
            column.frombytes(packed[start:end])
            columns.append([_value(place, column[at * width : (at + 1) * width]) for at in range(count)])
            start = end
        standings.filter(pk=pk).update(parts=json.dumps(list(zip(*columns))))


def _value(place, items):
    if place == RUN:
        known = bytes(items)
        return str(UUID(bytes=known)) if known != NO_RUN else None
    if place == MODES:
        return list(items)
    (value,) = items
    return bool(value) if place == 1 else None if math.isnan(value) else value


def uncompressed(apps, editor):
    if editor.connection.vendor == "postgresql":
        editor.execute("ALTER TABLE leaderboard_problemstanding ALTER COLUMN packed SET STORAGE EXTERNAL")


class Migration(migrations.Migration):

    dependencies = [
        ("leaderboard", "0018_judged_baselines"),
    ]

    operations = [
        migrations.AddField("problemstanding", "packed", models.BinaryField(default=b""), preserve_default=False),
        migrations.RunPython(uncompressed, migrations.RunPython.noop),
        migrations.RunPython(pack, unpack),
        # With a default, to be added again on the way back.
        migrations.AlterField("problemstanding", "parts", models.TextField(default="[]")),
        migrations.RemoveField("problemstanding", "parts"),
        migrations.RenameField("problemstanding", "packed", "parts"),
    ]
