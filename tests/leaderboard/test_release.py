"""One version: whoever reads a page, the API, a report or the changelog is told the same."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml
from django.conf import settings
from django.test import Client

from evaluator import Isolation, Job, Phase, __version__
from evaluator.judge.findings import Findings
from evaluator.messages.faults import Fault
from evaluator.messages.report import Environment, Verdict

ROOT = Path(settings.BASE_DIR)


def test_the_changelog_has_a_dated_heading_for_it_below_what_is_unreleased() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert headings[0] == "Unreleased"
    assert re.fullmatch(rf"{re.escape(__version__)} - \d{{4}}-\d\d-\d\d", headings[1])


def test_the_project_takes_it_from_the_evaluator() -> None:
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert told["project"]["dynamic"] == ["version"]
    assert told["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "evaluator.__version__"}


def test_the_foot_of_each_page_says_it(db: None, client: Client) -> None:
    foot = client.get("/status").content.decode().partition("<footer")[2]
    assert f"PKB Leaderboard {__version__}<" in foot


def test_the_api_says_it(db: None, client: Client) -> None:
    assert client.get("/api/v1/status").json()["software_version"] == __version__
    schema = yaml.safe_load((ROOT / "docs" / "openapi.yaml").read_text())
    assert schema["info"]["version"] == __version__


def test_a_new_report_says_it() -> None:
    known = {
        **{"problem": "allreduce", "problem_digest": "p", "isolation": Isolation.BWRAP},
        "environment": Environment(hardware="cpu", host="h", versions={}),
    }
    fault = Fault(Verdict.TIMEOUT, "timeout", "no answer")
    report = Findings(phase=Phase.VERIFY).report(Job(problem="allreduce", source="x"), fault, known)
    assert report.software_version == __version__
