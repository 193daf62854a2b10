"""Templates: each can be read, is tidy, escapes, and knows its words."""

from __future__ import annotations

import re
import uuid
from pathlib import Path

import pytest
from django.conf import settings
from django.template import engines
from django.template.loader import get_template
from django.test import override_settings
from django.urls import reverse, set_script_prefix
from django.utils.safestring import mark_safe
from jinja2 import Environment, UndefinedError, meta

from leaderboard.kit.links import one_prefix, url
from leaderboard.models import Visibility

FOLDER = Path(settings.BASE_DIR) / "templates"
NAMES = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.*"))
UNTIDY = re.compile(r"\{[{%#](?! \S)|(?<!\S )[}%#]\}|[ \t]+$|\t", re.MULTILINE)


@pytest.fixture
def jinja() -> Environment:
    found = engines.all()[0].env  # type: ignore[attr-defined]
    assert isinstance(found, Environment)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_template_can_be_read_and_so_can_those_it_names(name: str, jinja: Environment) -> None:
    jinja.get_template(name)
    tree = jinja.parse((FOLDER / name).read_text())
    assert set(meta.find_referenced_templates(tree)) <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_template_is_tidy(name: str) -> None:
    text = (FOLDER / name).read_text()
    assert not [text[found.start() - 20 : found.end() + 20] for found in UNTIDY.finditer(text)]
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def test_tidy_means_something() -> None:
    for text in ("{{a }}", "{{ a}}", "{%  if a %}", "{% if a  %}", "a \n"):
        assert UNTIDY.search(text), text


def test_text_is_escaped_and_what_is_safe_is_not(jinja: Environment) -> None:
    made = jinja.from_string("{{ text }}{{ text|visible }}{{ cell }}")
    said = made.render(text="<b>\u202e", cell=mark_safe("<td>"))
    assert said == "&lt;b&gt;\u202e&lt;b&gt;[U+202E]<td>"


@pytest.mark.parametrize("text", ["{{ misspelt }}", "{% if misspelt %}{% endif %}", "{{ a.b }}"])
def test_a_name_that_a_page_does_not_pass_is_an_error(text: str, jinja: Environment) -> None:
    with pytest.raises(UndefinedError):
        jinja.from_string(text).render(a={})


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("board", []),
        ("problem", [1, "allreduce"]),
        ("problem", [9_080_706_050, "a-b_c"]),
        ("attempt", [12, 13]),
        ("run", [uuid.UUID(int=77)]),
        ("run", [str(uuid.UUID(int=78))]),
        ("kernel", ["0123456789abcdef" * 4]),
        ("snapshot-file", ["2026-11", "a b%c-ü.jsonl"]),
        ("snapshot-file", ["2026-11", "runs.parquet"]),
        ("hardware", [Visibility.PUBLIC]),
    ],
)
def test_an_address_is_what_django_says(name: str, args: list[object]) -> None:
    assert url(name, *args) == reverse(name, args=args)
    assert url(name, *args) == reverse(name, args=args)


def test_an_address_follows_the_prefix() -> None:
    assert url("problem", 1, "allreduce") == "/problems/1-allreduce"
    set_script_prefix("/pkb/")
    try:
        assert url("problem", 1, "allreduce") == "/pkb/problems/1-allreduce"
        with one_prefix():
            assert url("problem", 1, "allreduce") == "/pkb/problems/1-allreduce"
    finally:
        set_script_prefix("/")
    assert url("problem", 1, "allreduce") == "/problems/1-allreduce"


def test_a_dict_gives_its_keys_but_keeps_what_is_its_own(jinja: Environment) -> None:
    known = {"number": 7, "items": "sent by somebody", "values": "too"}
    shown = jinja.from_string("{{ d.number }}{% for key, _ in d.items() %} {{ key }}{% endfor %}")
    assert shown.render(d=known) == "7 number items values"
    with pytest.raises(UndefinedError, match="no attribute 'absent'"):
        jinja.from_string("{{ d.absent }}").render(d=known)


@override_settings(DEBUG=False)
def test_pages_of_django_are_found_beside_ours() -> None:
    assert "django.template.backends.django" in type(get_template("admin/login.html")).__module__
    ours = get_template("account/login.html")
    assert "django.template.backends.jinja2" in type(ours).__module__
