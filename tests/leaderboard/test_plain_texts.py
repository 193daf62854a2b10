"""Texts for programs that read: llms.txt, statements and docs."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from leaderboard.models import Problem
from tests.leaderboard.factory import make_problem

pytestmark = pytest.mark.usefixtures("db")


def test_every_address_of_llms_txt_is_there(client: Client) -> None:
    make_problem(2, "allgather")
    answer = client.get("/llms.txt")
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    addresses = re.findall(r"\]\((?:https?://[^/)]+)?(/[^)]+)\)", answer.content.decode())
    assert len(addresses) > 20
    assert "/problems/2-allgather.md" in addresses
    assert {address: client.get(address).status_code for address in addresses} == dict.fromkeys(
        addresses, 200
    )


def test_a_statement_is_markdown_with_signature_and_reference(client: Client) -> None:
    row: Problem = make_problem(2, "allgather")
    text = client.get("/problems/2-allgather.md").content.decode()
    assert text.startswith(f"# Problem 2: {row.title}\n")
    assert f"```python\n{row.payload['signature']}\n```" in text
    assert row.payload["reference_source"].rstrip() in text


@pytest.mark.parametrize(
    "address", ["/docs/none.md", "/docs/..%2Fsettings.md", "/problems/3-allgather.md"]
)
def test_nothing_else_is_served(client: Client, address: str) -> None:
    assert client.get(address).status_code == 404
