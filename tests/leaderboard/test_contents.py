"""Long pages have a table of contents, whose links lead to parts of the page."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from tests.leaderboard import factory

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("address", ["/methodology", "/beats-nccl", "/problems/1-allreduce"])
def test_a_long_page_has_contents_that_lead_to_its_parts(address: str, client: Client) -> None:
    factory.make_judged(factory.make_submission(), factory.make_problem())
    page = client.get(address).content.decode()
    (contents,) = re.findall(r'<details class="toc">(.*?)</details>', page, re.S)
    anchors = re.findall(r'href="#([^"]+)"', contents)
    assert len(anchors) > 5
    assert len(set(anchors)) == len(anchors)
    for anchor in anchors:
        assert page.count(f'id="{anchor}"') == 1, anchor


def test_the_methodology_begins_with_its_glossary(client: Client) -> None:
    page = client.get("/methodology").content.decode()
    assert page.index('<h2 id="glossary">') < page.index('<h2 id="metrics">')
