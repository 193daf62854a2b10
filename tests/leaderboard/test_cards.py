"""The pictures that other sites show beside links: made from what their pages show."""

from __future__ import annotations

import struct

import pytest
from django.test import Client

from leaderboard.delivery import card_drawing
from leaderboard.delivery.cards import MOST_BARS, Card, CardBar, bars_of, written
from tests.leaderboard import factory
from tests.leaderboard.test_links import metas

PAGES = ("/", "/profiles", "/mechanisms", "/beats-nccl", "/problems/1-allreduce")


def size_of(picture: bytes) -> tuple[int, int]:
    assert picture.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", picture[16:24])
    return width, height


def test_a_card_has_the_size_that_readers_ask_for() -> None:
    bars = bars_of([(f"Model {i}", float(i), f"{i}x") for i in range(9)])
    picture = card_drawing.png(Card(title="What was found", says="On 2 GPUs", bars=bars))
    assert size_of(picture) == (1200, 630)
    assert len(bars) == MOST_BARS
    assert len(picture) < 60_000


def test_other_bars_make_another_picture() -> None:
    one, two = (
        card_drawing.png(
            Card(title="A", says="B", bars=(CardBar(name="n", value="1", share=share),))
        )
        for share in (0.2, 0.8)
    )
    assert one != two


def test_the_largest_value_is_as_wide_as_there_is_room_and_one_is_no_bar() -> None:
    assert [bar.share for bar in bars_of([("a", 4.0, "4x"), ("b", 1.0, "1x")])] == [1.0, 0.25]
    assert bars_of([("a", 0.0, "0"), ("b", 0.0, "0")])[0].share == 0.0
    assert bars_of([("a", 1.0, "1x")]) == ()


def test_what_the_font_lacks_is_written_in_other_letters() -> None:
    assert written("2.61× – Müller’s 4\N{NO-BREAK SPACE}µs") == "2.61x - Muller's 4 us"
    assert written("模型 \x1b\n") == "?? ??"


def test_a_long_title_is_made_smaller_and_then_cut() -> None:
    size, lines = card_drawing.title_lines("Short")
    assert (size, lines) == (card_drawing.TITLE_SIZES[0], ["Short"])
    size, lines = card_drawing.title_lines("a longer word " * 40)
    assert size == card_drawing.TITLE_SIZES[-1]
    assert len(lines) == card_drawing.MOST_LINES
    assert lines[-1].endswith("...")
    room = card_drawing.SIZE_PX[0] - 2 * card_drawing.MARGIN_PX
    (line,) = card_drawing.title_lines("x" * 500)[1]
    assert card_drawing._font(size).getlength(line) <= room


@pytest.mark.django_db
@pytest.mark.parametrize("address", PAGES)
def test_a_page_names_its_card_and_serves_it(address: str, client: Client) -> None:
    factory.make_judged(factory.make_submission(), factory.make_problem())
    said = metas(client.get(address).content.decode())
    picture = said["og:image"].removeprefix("http://testserver")
    assert picture == ("/leaderboard" if address == "/" else address) + ".png"
    answer = client.get(picture)
    assert answer.headers["Content-Type"] == "image/png"
    assert size_of(answer.content) == (1200, 630)


@pytest.mark.django_db
def test_a_card_is_of_the_setting_of_its_page(client: Client) -> None:
    factory.make_judged(factory.make_submission(), factory.make_problem())
    said = metas(client.get("/?ranks=2").content.decode())
    assert said["og:image"] == "http://testserver/leaderboard.png?ranks=2"
    assert client.get("/leaderboard.png?ranks=two").status_code == 400


@pytest.mark.django_db
@pytest.mark.parametrize("address", PAGES[:-1])
def test_without_results_there_is_a_card_as_well(address: str, client: Client) -> None:
    answer = client.get(f"{'/leaderboard' if address == '/' else address}.png")
    assert size_of(answer.content) == (1200, 630)


@pytest.mark.django_db
def test_other_pages_have_the_picture_of_the_site(client: Client) -> None:
    said = metas(client.get("/problems").content.decode())
    assert said["og:image"] == "http://testserver/static/preview.png"
