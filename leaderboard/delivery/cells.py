"""Writes numbers as text, and as table cells with the macros of templates/_cells.html.

Cells accept numbers and None only: a string here could carry markup.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable

from django.template import engines
from django.utils.safestring import SafeString

from leaderboard.metrics.intervals import Interval

Number = float | int | None

MISSING = "–"
_BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_COUNT_UNITS = ("", "k", "M", "G", "T", "P")
_MARKS_A_ROW = 20
# Few numbers change from one version of the data to the next, and many stand in several rows. By
# type too, so that what is refused is not taken for the number that it equals.
_drawn_once = functools.lru_cache(maxsize=4096, typed=True)


def draw(macro: str, *values: object) -> SafeString:
    """Draw a cell with a macro of the template, which escapes."""
    template = engines["jinja2"].env.get_template("_cells.html")  # type: ignore[attr-defined]
    return SafeString(getattr(template.module, macro)(*values))


def not_timed() -> SafeString:
    """Return the cell of a time where kernels were only checked."""
    return draw("not_timed")


def missing() -> SafeString:
    """Return the cell of what is not known."""
    return draw("missing")


def joined(cells: Iterable[SafeString]) -> SafeString:
    parts = list(cells)
    if not {*map(type, parts)} <= {SafeString}:
        raise TypeError("only cells made in this module can be joined")
    return SafeString("".join(parts))


def share_cell(value: Number, interval: Interval | None = None, below: str = "") -> SafeString:
    """Return per cent, a bar of that length and a whisker for the interval."""
    return _bar_cell(value, interval, "", None, below)


def fast_cell(value: Number, interval: Interval | None, likely: Number, unsure: int) -> SafeString:
    """Return a share whose bar goes on, pale, as far as `likely`: with `unsure` more kernels, whose
    intervals hold the threshold."""
    more = 100 * (_checked(likely) or 0.0)
    says = f"{more:.1f} % with {unsure:d} not distinguishable" if unsure else ""
    return _bar_cell(value, interval, says, likely)


@_drawn_once
def _bar_cell(
    value: Number, interval: Interval | None, says: str, likely: Number, below: str = ""
) -> SafeString:
    """Draw a share; `says`, made of numbers in this module, follows the interval in the title."""
    number, pale_to = _checked(value), _checked(likely)
    if number is None:
        return draw("missing")
    shown = f"{100 * number:.1f}"
    wide = shown if 0.0 <= number <= 1.0 else f"{_per_cent(number):.1f}"
    title, pale = says, ""
    whisker: tuple[str, ...] = ()
    if interval:
        low, high = f"{100 * interval.low:.1f}", f"{100 * interval.high:.1f}"
        title = f"95 % interval {low} to {high} %" + (f"; {says}" if says else "")
        length = 100 * (interval.high - interval.low)
        whisker = (low, f"{length:.1f}")
    if pale_to is not None and pale_to > number:
        pale = f"{_per_cent(pale_to):.1f}"
    return draw("bar", shown, title, pale, wide, whisker, below)


def _per_cent(share: float) -> float:
    return 100 * min(max(share, 0.0), 1.0)


@_drawn_once
def heat_cell(value: Number) -> SafeString:
    """Return a share from 0 to 1 as per cent, tinted in eleven steps."""
    number = _checked(value)
    if number is None:
        return draw("missing")
    return draw("heat", round(10 * min(max(number, 0.0), 1.0)), f"{100 * number:.0f}")


@_drawn_once
def tinted_cell(value: Number, part: Number) -> SafeString:
    """Return a number, tinted in eleven steps by a share from 0 to 1."""
    number, share = _checked(value), _checked(part)
    if number is None or share is None:
        return _cell(value, significant)
    return draw("heat", round(10 * min(max(share, 0.0), 1.0)), significant(number))


@_drawn_once
def interval_cell(value: Number, low: Number, high: Number) -> SafeString:
    """Return a speedup with its 95 % interval below it."""
    number, least, most = _checked(value), _checked(low), _checked(high)
    if number is None or least is None or most is None:
        return ratio_cell(value)
    interval = f"{significant(least)} – {significant(most)}"
    return draw("number", f"{significant(number)}×", interval)


@_drawn_once
def mean_cell(
    value: Number, interval: Interval | None, dominant: tuple[int, float, float] | None
) -> SafeString:
    """Return a mean speedup with its 95 % interval, and `dominant` in a title: the problem that
    moves the mean most, the speedup there, and the mean without it."""
    low, high = interval or (None, None)
    if dominant is None or _checked(value) is None:
        return interval_cell(value, low, high)
    below = f"{significant(interval.low)} – {significant(interval.high)}" if interval else ""
    return draw("number", ratio_text(value), below, "", dominance_text(*dominant))


def dominance_text(problem: int, speedup: float, without: float) -> str:
    """Return `Without problem 73 (0.01×) it is 2.40×.`"""
    return f"Without problem {problem:d} ({ratio_text(speedup)}) it is {ratio_text(without)}."


@_drawn_once
def per_cent_cell(value: Number) -> SafeString:
    """Return a share without a bar; the head of its column says that it is per cent."""
    return _cell(value, lambda number: f"{100 * number:.1f}")


def floor_cell(
    amount: Number, us: Number, *, text: Callable[[Number], str], binds: bool
) -> SafeString:
    """Return the least that a call must move or do, and the time for it; set off where it binds."""
    kind = " binds" if binds else ""
    return draw("number", text(_checked(amount)), _least_text(us), kind)


def _least_text(us: Number) -> str:
    """Return the time in words, but nothing shorter than 0.01 µs."""
    number = _checked(us)
    return "< 0.01 µs" if number is not None and number < 0.01 else microseconds_text(number)


@_drawn_once
def reached_cell(us: Number, bound_us: Number, how: str = "") -> SafeString:
    """Return a measured time, below it how much of the bound that is, and how it was measured."""
    taken, least = _checked(us), _checked(bound_us)
    if not taken or least is None:
        return _cell(us, microseconds_text)
    share = ", ".join(filter(None, (f"{100 * least / taken:.0f} %", how)))
    return draw("number", microseconds_text(taken), share)


@_drawn_once
def time_cell(us: Number) -> SafeString:
    return _cell(us, microseconds_text)


@_drawn_once
def ratio_cell(value: Number) -> SafeString:
    return _cell(value, lambda number: f"{significant(number)}×")


@_drawn_once
def count_cell(value: Number) -> SafeString:
    return _cell(value, lambda number: f"{number:,.0f}")


@_drawn_once
def decimal_cell(value: Number, digits: int = 1) -> SafeString:
    return _cell(value, lambda number: f"{number:,.{digits}f}")


@_drawn_once
def significant_cell(value: Number) -> SafeString:
    return _cell(value, significant)


@_drawn_once
def bytes_cell(value: Number) -> SafeString:
    return _cell(value, bytes_text)


@_drawn_once
def fraction_cell(part: Number, whole: Number) -> SafeString:
    top, bottom = _checked(part), _checked(whole)
    if top is None or bottom is None:
        return draw("missing")
    return draw("fraction", f"{top:,.0f}", f"{bottom:,.0f}")


def any_cell(value: object) -> SafeString:
    """Return text, escaped, or a number to three significant digits."""
    if isinstance(value, str):
        return draw("words", value)
    number = _checked(value)
    return count_cell(number) if isinstance(value, int) else _cell(number, significant)


@_drawn_once
def part_cell(part: Number, whole: Number) -> SafeString:
    """Return `3 of 5`, tinted in eleven steps by the share; a mean has one decimal."""
    some, every = _checked(part), _checked(whole)
    if some is None or not every:
        return draw("missing")
    step = round(10 * min(max(some / every, 0.0), 1.0))
    return draw("part", step, _plain(some), f"{every:,.0f}")


@_drawn_once
def change_cell(first: Number, then: Number) -> SafeString:
    """Return `3 → 5`: problems solved with one attempt and with k; a mean has one decimal."""
    before, after = _checked(first), _checked(then)
    if before is None:
        return draw("missing")
    return draw("change", _plain(before), MISSING if after is None else _plain(after))


def _plain(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


def unit_marks(*counts: int) -> SafeString:
    """Return a small square for each thing counted, with class `u0`, `u1`, ... for each count."""
    kinds = [kind for kind, count in enumerate(counts) for _ in range(count)]
    return draw("units", kinds, _MARKS_A_ROW)


@_drawn_once
def margin_cell(value: Number, passed: bool) -> SafeString:
    """Return an error in units of the tolerance; said in words too where it failed."""
    number = _checked(value)
    text = MISSING if number is None else significant(number)
    return draw("margin", text, "pass" if passed else "fail")


def share_text(value: Number) -> str:
    return MISSING if _checked(value) is None else f"{100 * (value or 0.0):.1f} %"


def ratio_text(value: Number) -> str:
    """Return `1.30×`; three significant digits."""
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
    """Return `2.15 G`; for operations."""
    return _scaled(value, 1000, _COUNT_UNITS)


def significant(number: float) -> str:
    """Return three significant digits, without an exponent where that is readable."""
    if 1.0 <= number < 10.0:  # most are, and need no logarithm
        return f"{number:.2f}"
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
        return draw("missing")
    return draw("number", text(number))


def _checked(value: object) -> float | None:
    """Return a finite number or None.

    Raises TypeError: a string here could carry markup.
    """
    if value is None:
        return None
    if isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool)):
        return value if math.isfinite(value) else None
    raise TypeError(f"a cell holds a number or None, not {type(value).__name__}")
