"""Shows the snapshots: which there are, what they hold, and the files themselves."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from django.http import FileResponse, Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils.http import parse_etags
from django.views.decorators.http import require_safe

from leaderboard.delivery import citing
from leaderboard.delivery.pages import Crumb, Page, Table, origin, public_page
from leaderboard.kit.json_types import JsonDict
from leaderboard.kit.links import url
from leaderboard.models import Snapshot
from leaderboard.publishing import snapshots

COLUMNS = ("tag", "created_at", "data_version", "judge_version", "bytes", "manifest_sha256")
FILE_COLUMNS = ("name", "bytes", "sha256", "url")
# A file never changes: whoever has it need not ask again.
FOR_EVER = "public, max-age=31536000, immutable"


@public_page(live=True)
def listed(request: HttpRequest) -> Page:
    rows = [record(snapshot) for snapshot in Snapshot.objects.all()]
    return Page(
        template="snapshots.html",
        section="snapshots",
        context={"snapshots": rows},
        data={"snapshots": rows},
        table=Table.of(COLUMNS, rows),
        crumbs=(Crumb(text="Leaderboard", url=url("board")), Crumb(text="Snapshots")),
    )


@public_page(live=True)
def snapshot(request: HttpRequest, tag: str) -> Page:
    found = get_object_or_404(Snapshot, pk=tag)
    address = url("snapshot", tag)
    files = [{**file, "url": f"{address}/{file['name']}"} for file in found.files]
    shown = record(found)
    return Page(
        template="snapshot.html",
        section="snapshots",
        context={
            "snapshot": shown,
            "tables": tables_of(files),
            "manifest_url": f"{address}/{snapshots.MANIFEST}",
            "licence": snapshots.LICENCE,
            "site": origin(request),
            "cite": citing.of_snapshot(
                found, snapshots.manifest_digest(found), f"{origin(request)}{address}"
            ),
        },
        data={**shown, "files": files},
        table=Table(
            columns=FILE_COLUMNS, rows=[[file[name] for name in FILE_COLUMNS] for file in files]
        ),
        crumbs=(
            Crumb(text="Leaderboard", url=url("board")),
            Crumb(text="Snapshots", url=url("snapshots")),
            Crumb(text=found.tag),
        ),
    )


def tables_of(files: Iterable[JsonDict]) -> list[JsonDict]:
    """Return the files of each table, the manifest left out."""
    tables: dict[str, JsonDict] = {}
    for file in files:
        name = file["name"].partition(".")[0]
        if file["name"] != snapshots.MANIFEST:
            holds = snapshots.HOLDS.get(name, "")
            made = {"name": name, "holds": holds, "rows": file.get("rows"), "files": []}
            tables.setdefault(name, made)["files"].append(file)
    return list(tables.values())


def record(found: Snapshot) -> dict[str, object]:
    return {
        "tag": found.tag,
        "created_at": found.created_at,
        "data_version": found.data_version,
        "judge_version": found.judge_version,
        "bytes": sum(file["bytes"] for file in found.files),
        "manifest_sha256": snapshots.manifest_digest(found),
        "url": url("snapshot", found.tag),
    }


@require_safe
def file(request: HttpRequest, tag: str, name: str) -> HttpResponseBase:
    """Stream a file of a snapshot: only what the snapshot's row records."""
    known = snapshots.file_called(get_object_or_404(Snapshot, pk=tag), name)
    path = snapshots.folder(tag) / known["name"] if known else None
    if known is None or path is None or not path.is_file():
        raise Http404
    etag = f'"{known["sha256"]}"'
    response: HttpResponseBase
    if etag in parse_etags(request.headers.get("If-None-Match", "")):
        response = HttpResponse(status=304)
    else:
        kind = snapshots.TYPES[Path(name).suffix]
        response = FileResponse(path.open("rb"), as_attachment=True, filename=name)
        response["Content-Type"] = kind
    response["ETag"] = etag
    response["Cache-Control"] = FOR_EVER
    return response
