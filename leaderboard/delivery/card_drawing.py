"""Draws a card as a PNG of 1200 x 630 pixels, as sites that preview links ask for."""

from __future__ import annotations

import functools
import io

from PIL import Image, ImageDraw, ImageFont

from leaderboard.delivery.cards import MOST_BARS, Card, CardBar, written

SIZE_PX = (1200, 630)
MARGIN_PX = 72
PAPER, INK, SOFT, ACCENT, TRACK = "#fcfcfa", "#191b1d", "#565b60", "#005b91", "#e6e6e0"
NAMES_PX, VALUES_PX, BAR_PX, ROW_PX = 410, 150, 26, 48
SITE = "ParallelKernelBench leaderboard"
TITLE_SIZES = (60, 52, 44)
MOST_LINES = 3


def png(card: Card) -> bytes:
    """Return the card as the bytes of a PNG."""
    image = Image.new("RGB", SIZE_PX, PAPER)
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, SIZE_PX[0], 13), fill=ACCENT)
    draw.text((MARGIN_PX, 48), SITE, font=_font(28), fill=SOFT)
    size, lines = title_lines(card.title)
    top = 108
    for line in lines:
        draw.text((MARGIN_PX, top), line, font=_font(size), fill=INK, stroke_width=0.7)
        top += round(1.16 * size)
    for line in wrapped(card.says, _font(26), _room(), 2):
        draw.text((MARGIN_PX, top + 14), line, font=_font(26), fill=SOFT)
        top += 34
    bars = card.bars[:MOST_BARS]
    first = SIZE_PX[1] - 48 - ROW_PX * len(bars)
    for place, bar in enumerate(bars):
        _draw_bar(draw, bar, first + ROW_PX * place)
    out = io.BytesIO()
    image.quantize(32).save(out, "PNG", optimize=True)
    return out.getvalue()


def _draw_bar(draw: ImageDraw.ImageDraw, bar: CardBar, top: int) -> None:
    font, left = _font(25), MARGIN_PX + NAMES_PX
    right = SIZE_PX[0] - MARGIN_PX - VALUES_PX
    (name,) = wrapped(bar.name, font, NAMES_PX - 20, 1) or [""]
    draw.text((MARGIN_PX, top - 2), name, font=font, fill=INK)
    draw.rectangle((left, top, right, top + BAR_PX), fill=TRACK)
    if bar.share > 0:
        end = left + max(2, round(min(bar.share, 1.0) * (right - left)))
        draw.rectangle((left, top, end, top + BAR_PX), fill=ACCENT)
    (value,) = wrapped(bar.value, font, VALUES_PX - 14, 1) or [""]
    draw.text((right + 14, top - 2), value, font=font, fill=INK)


def title_lines(title: str) -> tuple[int, list[str]]:
    """Return the largest size at which a title fits, and its lines; the smallest one cuts it."""
    for size in TITLE_SIZES:
        lines = wrapped(title, _font(size), _room(), MOST_LINES + 1)
        if len(lines) < MOST_LINES + (size == TITLE_SIZES[-1]):
            break
    return size, wrapped(title, _font(size), _room(), MOST_LINES)


def wrapped(text: str, font: ImageFont.FreeTypeFont, room_px: float, most: int) -> list[str]:
    """Return at most so many lines that fit into the room; what is cut ends with dots."""
    lines, words = list[str](), written(text).split()
    while words and len(lines) < most:
        line = words.pop(0)
        while words and font.getlength(f"{line} {words[0]}") <= room_px:
            line += f" {words.pop(0)}"
        lines.append(line)
    if lines:
        lines[-1] = _cut(lines[-1], font, room_px, more=bool(words))
    return lines


def _cut(line: str, font: ImageFont.FreeTypeFont, room_px: float, *, more: bool) -> str:
    if not more and font.getlength(line) <= room_px:
        return line
    while line and font.getlength(f"{line}...") > room_px:
        line = line[:-1]
    return f"{line.rstrip()}..."


def _room() -> int:
    return SIZE_PX[0] - 2 * MARGIN_PX


@functools.cache
def _font(size: int) -> ImageFont.FreeTypeFont:
    """Return the font that comes with Pillow; raise RuntimeError where it was built without."""
    font = ImageFont.load_default(size)
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise RuntimeError("Pillow was built without FreeType, which draws the text of cards")
    return font
