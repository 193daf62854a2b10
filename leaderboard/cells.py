"""Numbers as text and as table cells.

Cells accept numbers and None only: a number cannot carry markup, so joining cells in Python is safe
and about twenty times faster than a template filter for each. Besides the highlighter this is the
one place that marks a string as safe.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from leaderboard.scores import Interval
from leaderboard.visible import visible

Number = float | int | None

MISSING = "–"
_MISSING_CELL = f'<td class="num none">{MISSING}</td>'
_BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_COUNT_UNITS = ("", "k", "M", "G", "T", "P")


def joined(cells: Iterable[SafeString]) -> SafeString:
    parts = list(cells)
    if not all(isinstance(part, SafeString) for part in parts):
        raise TypeError("only cells made in this module can be joined")
    return mark_safe("".join(parts))


def share_cell(value: Number, interval: Interval | None = None) -> SafeString:
    """Per cent, a bar of that length and a whisker for the interval."""
    number = _checked(value)
    if number is None:
        return mark_safe(_MISSING_CELL)
    low, high = (100 * interval.low, 100 * interval.high) if interval else (None, None)
    whisker = "" if low is None else f'<path class="ci" d="M{low:.1f} 4H{high:.1f}"/>'
    label = "" if low is None else f' title="95 % interval {low:.1f} to {high:.1f} %"'
    return mark_safe(
        f'<td class="num share"{label}>{100 * number:.1f}'
        '<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        f'<path d="M0 0H{100 * min(max(number, 0.0), 1.0):.1f}V8H0"/>{whisker}</svg></td>'
    )


def heat_cell(value: Number) -> SafeString:
    """A share from 0 to 1 as per cent, tinted in eleven steps."""
    number = _checked(value)
    if number is None:
        return mark_safe(_MISSING_CELL)
    step = round(10 * min(max(number, 0.0), 1.0))
    return mark_safe(f'<td class="num heat h{step}">{100 * number:.0f}</td>')


def ratio_cell(value: Number) -> SafeString:
    return _cell(value, ratio_text)


def count_cell(value: Number) -> SafeString:
    return _cell(value, lambda number: f"{number:,.0f}")


def decimal_cell(value: Number, digits: int = 1) -> SafeString:
    return _cell(value, lambda number: f"{number:,.{digits}f}")


def bytes_cell(value: Number) -> SafeString:
    return _cell(value, bytes_text)


def operations_cell(value: Number) -> SafeString:
    return _cell(value, count_text)


def fraction_cell(part: Number, whole: Number) -> SafeString:
    top, bottom = _checked(part), _checked(whole)
    if top is None or bottom is None:
        return mark_safe(_MISSING_CELL)
    return mark_safe(f'<td class="num">{top:.0f}<span class="of">/{bottom:.0f}</span></td>')


def any_cell(value: object) -> SafeString:
    """Text, escaped, or a number to three significant digits."""
    if isinstance(value, str):
        return format_html("<td><bdi>{}</bdi></td>", visible(value))
    number = _checked(value)
    is_count = isinstance(value, int)
    return count_cell(number) if is_count else _cell(number, significant)


def margin_cell(value: Number, passed: bool) -> SafeString:
    """An error in units of the tolerance; said in words too where it failed."""
    number = _checked(value)
    state = "pass" if passed else "fail"
    text = MISSING if number is None else significant(number)
    mark = "" if passed else ' <span class="mark">fail</span>'
    return mark_safe(f'<td class="num margin {state}">{text}{mark}</td>')


def share_text(value: Number) -> str:
    return MISSING if _checked(value) is None else f"{100 * (value or 0.0):.1f} %"


def ratio_text(value: Number) -> str:
    """`1.30×`; three significant digits."""
    number = _checked(value)
    return MISSING if number is None else f"{significant(number)}×"


def microseconds_text(value: Number) -> str:
    number = _checked(value)
    if number is None:
        return MISSING
    if number < 1e3:
        return f"{significant(number)} µs"
    return f"{significant(number / 1e3)} ms" if number < 1e6 else f"{significant(number / 1e6)} s"


def bytes_text(value: Number) -> str:
    return _scaled(value, 1024, _BYTE_UNITS)


def count_text(value: Number) -> str:
    """`2.15 G`; for operations."""
    return _scaled(value, 1000, _COUNT_UNITS)


def significant(number: float) -> str:
    """Three significant digits without an exponent where that is readable."""
    if number == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(number)))
    if not -4 <= magnitude <= 6:
        return f"{number:.2e}"
    return f"{number:,.{max(0, 2 - magnitude)}f}"


def _scaled(value: Number, factor: int, units: tuple[str, ...]) -> str:
    number = _checked(value)
    if number is None:
        return MISSING
    step = 0
    while abs(number) >= factor and step < len(units) - 1:
        number, step = number / factor, step + 1
    text = f"{number:.0f}" if step == 0 else significant(number)
    return f"{text} {units[step]}".rstrip()


def _cell(value: Number, text: Callable[[float], str]) -> SafeString:
    number = _checked(value)
    if number is None:
        return mark_safe(_MISSING_CELL)
    return mark_safe(f'<td class="num">{text(number)}</td>')


def _checked(value: object) -> float | None:
    """A finite number or None; anything else is a mistake of ours.

    Raises TypeError: a string here could carry markup.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"a cell holds a number or None, not {type(value).__name__}")
    return float(value) if math.isfinite(value) else None
