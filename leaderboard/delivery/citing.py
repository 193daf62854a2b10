"""Says how to cite a page or a snapshot: what `_cite.html` shows."""

from __future__ import annotations

from datetime import date

from django.http import HttpRequest
from django.utils import timezone

from leaderboard.delivery.pages import origin
from leaderboard.models import Snapshot

TITLE = "PKB Leaderboard"
AUTHORS = "PKB Leaderboard contributors"


def of_page(request: HttpRequest, address: str) -> dict[str, str] | None:
    """Return the context `cite` of the page at an address; None where the site does not know its
    own."""
    site = origin(request)
    return live(site + address, timezone.localdate()) if site else None


def live(url: str, seen: date) -> dict[str, str]:
    """Return the context `cite` of a page whose numbers change."""
    return {
        "text": f"{AUTHORS} ({seen.year}). {TITLE}. Results as of {seen.isoformat()}. {url}",
        "bibtex": _bibtex(
            f"pkb-leaderboard-{seen.isoformat()}",
            title=f"{{{TITLE}}}",
            url=url,
            seen=seen,
            note=f"Results as of {seen.isoformat()}",
        ),
    }


def of_snapshot(snapshot: Snapshot, digest: str, url: str) -> dict[str, str]:
    """Return the context `cite` of a snapshot; `digest` is its manifest's SHA-256."""
    made, title = snapshot.created_at.date(), f"{TITLE}, snapshot {snapshot.tag}"
    # A snapshot may be called by its day.
    dated = title if made.isoformat() in title else f"{title}, {made.isoformat()}"
    note = f"SHA-256 of MANIFEST.json: {digest}"
    return {
        "text": f"{AUTHORS} ({made.year}). {dated}. {url} ({note})",
        "bibtex": _bibtex(
            f"pkb-leaderboard-{snapshot.tag}",
            title=f"{{{TITLE}}}, snapshot {snapshot.tag}".replace("_", r"\_"),
            url=url,
            seen=made,
            note=note,
        ),
    }


def _bibtex(key: str, *, title: str, url: str, seen: date, note: str) -> str:
    fields = {
        "author": f"{{{AUTHORS}}}",
        "title": title,
        "year": str(seen.year),
        "month": str(seen.month),
        "url": url,
        "note": note,
    }
    lines = [f"  {name:<6} = {{{value}}}," for name, value in fields.items()]
    return "\n".join([f"@misc{{{key},", *lines, "}"])
