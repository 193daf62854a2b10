"""What the site tells of hostile kernels is what they are."""

from __future__ import annotations

import json

from evaluator.messages.report import JUDGE_VERSION
from tests.evaluator import attack_list


def test_the_exported_attacks_are_those_of_the_kernels() -> None:
    assert attack_list.PATH.read_text() == attack_list.text(), (
        "run: python -m tests.evaluator.attack_list"
    )


def test_versions_are_those_there_were_and_mistakes_are_no_attacks() -> None:
    told = json.loads(attack_list.PATH.read_text())
    assert {int(one["since"]) for one in told} <= set(range(1, int(JUDGE_VERSION) + 1))
    assert not [one for one in told if one["tries"].startswith("none")]
    (new,) = [one for one in attack_list.attacks({}) if one["name"] == "zeros"]
    assert new["since"] == JUDGE_VERSION
