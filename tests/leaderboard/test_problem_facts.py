"""What a problem's page says of the problem itself."""

from __future__ import annotations

import copy

from django.test import Client

from evaluator.messages.roofline_bounds import RooflineBounds
from leaderboard.metrics.floors import FLOOR_WORDS
from leaderboard.models import Problem
from leaderboard.problem_pages.problem_facts import health_groups, requirements
from leaderboard.read_model.baselines import row_alone
from tests.leaderboard import factory
from tests.leaderboard.problem_payload import BASELINE, HEALTH


def test_findings_are_grouped_by_what_must_happen_to_them() -> None:
    found = [f for part in HEALTH.values() for f in part["findings"]]
    wrong, honest = health_groups(found, ["float32"])
    names = [answer["name"] for answer in wrong["answers"]]  # type: ignore[attr-defined]
    assert names == ["a constant", "zeros", "low-precision"]
    states = [
        finding["state"]
        for group in (wrong, honest)
        for answer in group["answers"]  # type: ignore[attr-defined]
        for finding in answer["findings"]
    ]
    assert states == ["bad", "ok", "open", "ok"]


def test_requirements_are_said_in_words() -> None:
    needs = {"peer_access": True, "multicast": False, "memory_gib": 8}
    assert requirements(needs) == "peer-to-peer access, 8 GiB a GPU"
    assert requirements({**needs, "multicast": True}).startswith(
        "peer-to-peer access, NVLink multicast"
    )


def test_a_baseline_tells_its_gpu_and_its_spread() -> None:
    row = row_alone(BASELINE)
    assert row["gpu"] == "NVIDIA H200"
    for text in ("31.9", "31.5", "32.4", "95.0 MiB", "0.40"):
        assert text in str(row["cells"]), text


def test_the_page_shows_health_and_baseline(problem: Problem, client: Client) -> None:
    text = client.get(problem.get_absolute_url()).content.decode()
    for told in (
        "Must be rejected",
        "does not apply",
        "1.33e+11",
        "102 seeds at size tiny on 2 and 4 ranks (CPU)",
        "NVIDIA H200",
    ):
        assert told in text
    assert "of an older version" not in text


def test_a_baseline_of_other_code_says_so(problem: Problem, client: Client) -> None:
    problem.payload = copy.deepcopy(problem.payload)
    problem.payload["baselines"][0]["current"] = False
    problem.payload["latency_bound_reason"] = "it moves one number"
    problem.payload["also"] = ["Sequence Parallel", "Other"]
    problem.save()
    text = client.get(problem.get_absolute_url()).content.decode()
    assert "of an older version of this problem" in text
    assert "it moves one number" in text
    assert "also Sequence Parallel, Other" in text


def test_what_limits_a_kernel_has_one_name_on_every_page(problem: Problem, client: Client) -> None:
    floors = RooflineBounds(wire_us=1.0, hbm_us=1.0, flops_us=0.5, latency_us=9.0)
    run = factory.make_run(factory.make_kernel(factory.make_submission(), problem))
    factory.finish(run, factory.make_report(run, floors=floors))
    kernel = client.get(f"/kernels/{run.kernel.source_id}").content.decode()
    assert "limited by latency" in kernel
    assert 'Latency <span class="chip">bound</span>' in kernel
    task = client.get(problem.get_absolute_url()).content.decode()
    methods = client.get("/methodology").content.decode()
    for name, counted, means in FLOOR_WORDS.values():
        assert f">{name.capitalize()}<small>{counted}</small>" in task
        assert f"<dt>{name}</dt><dd>{means}</dd>" in methods
        assert means in kernel
    for page in (kernel, task):
        assert 'href="/methodology#floors"' in page
        assert "Exchanges<" not in page
