"""Filters for single facts. Tables join their cells in `leaderboard.cells` instead."""

from __future__ import annotations

from django import template

from leaderboard import cells
from leaderboard.visible import visible

register = template.Library()

register.filter("visible", lambda text: visible(str(text)))
register.filter("share", cells.share_text)
register.filter("ratio", cells.ratio_text)
register.filter("microseconds", cells.microseconds_text)
register.filter("bytes", cells.bytes_text)
register.filter("count", cells.count_text)
