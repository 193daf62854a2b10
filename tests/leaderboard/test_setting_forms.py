"""Forms of a setting, sent as a browser without scripts sends them: with all that they hold."""

from __future__ import annotations

import re

import pytest
from django.http import QueryDict
from django.test import Client

from leaderboard.models import Hardware, Kernel
from tests.leaderboard import factory

pytestmark = pytest.mark.django_db
FORM = re.compile(r'<form class="filters".*?</form>', re.DOTALL)
SELECT = re.compile(r'<select id="[^"]*" name="(\w+)".*?value="([^"]*)" selected', re.DOTALL)
HIDDEN = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)"')
APART = "Nothing was judged under all of these at once."


@pytest.fixture(autouse=True)
def judged(db: None) -> None:
    """On two ranks of the processor and on four GPUs, in other sizes and types."""
    Hardware.objects.create(slug="h200x4", title="4 x H200", device="cuda", max_world_size=4)
    kernel = factory.make_kernel(factory.make_submission(), factory.make_problem())
    for changes in (
        {},
        {"hardware_id": "h200x4", "world_size": 4, "size": "large", "dtype": "bfloat16"},
        {"hardware_id": "h200x4", "world_size": 4, "size": "standard", "dtype": "float32"},
    ):
        run = factory.make_run(kernel, **changes)
        factory.finish(run, factory.make_report(run))


def held(text: str) -> dict[str, str]:
    form = FORM.search(text)
    assert form
    return dict([*SELECT.findall(form[0]), *HIDDEN.findall(form[0])])


@pytest.mark.parametrize(
    "page",
    ["/", "/matrix", "/problems", "/problems/1-allreduce", "/categories", "/compare"],
)
def test_other_hardware_leads_to_the_nearest_setting_it_has(page: str, client: Client) -> None:
    sent = held(client.get(page).text)
    assert sent["drawn"] == sent["hardware"]
    other = {"cpu": "h200x4", "h200x4": "cpu"}[sent["hardware"]]
    answer = client.get(page, {**sent, "hardware": other})
    assert answer.status_code == 302
    asked = QueryDict(answer["Location"].partition("?")[2])
    assert answer["Location"].startswith(f"{page}?")
    assert "drawn" not in asked
    assert asked["hardware"] == other
    found = client.get(answer["Location"])
    assert found.status_code == 200
    assert APART not in found.text
    assert held(found.text)["drawn"] == other


def test_what_agrees_with_the_form_stays_and_so_do_other_filters(client: Client) -> None:
    sent = {"hardware": "h200x4", "ranks": "2", "dtype": "float32", "p": "1.5", "drawn": "cpu"}
    where = QueryDict(client.get("/", sent)["Location"].partition("?")[2])
    assert (where["size"], where["dtype"], where["ranks"]) == ("standard", "float32", "4")
    assert where["p"] == "1.5"


def test_the_same_hardware_and_typed_addresses_stay_as_asked(client: Client) -> None:
    sent = {"hardware": "cpu", "ranks": "4", "category": "", "drawn": "cpu"}
    assert client.get("/", sent)["Location"] == "/?hardware=cpu&ranks=4"
    typed = client.get("/?hardware=cpu&ranks=4")
    assert typed.status_code == 200
    assert APART in typed.text
    assert client.get("/?hardware=gpu&drawn=cpu").status_code == 400


def test_a_part_of_a_setting_that_is_set_is_named(client: Client) -> None:
    kernel = Kernel.objects.get()
    run = factory.make_run(kernel)
    factory.finish(run, factory.make_report(run, judge_version="1"))
    page = client.get("/?hardware=cpu&ranks=2&judge=1").text
    assert "</span>judge 1 <span" in page
    assert "More filters" in page
    assert "· judge 1" in page
    assert '<option value="1" selected>judge 1</option>' in page
