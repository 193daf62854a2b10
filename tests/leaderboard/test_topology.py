"""The hardware topology text that a model is shown: made in one place, the same everywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from leaderboard.metrics import floors
from leaderboard.models import DataVersion, Hardware, Problem
from leaderboard.read_model import calibration, topologies
from leaderboard.runs.hosts import register
from problems import topology
from problems.topology import HardwareClass, hardware_text, problem_text
from tests.leaderboard import factory
from tests.leaderboard.conftest import Api

SHIPPED = Path(calibration.FOLDER) / "calibration-h200x4.json"
PAYLOAD = {"world_sizes": [2, 4, 8], "topology": "a ring of all ranks"}


def gpus(name: str, count: int, pair_gb_s: float | None = None) -> HardwareClass:
    return HardwareClass(f"x{count}", f"{count} x {name}", "cuda", count, pair_gb_s)


def test_every_gpu_of_the_datasheets_has_its_node() -> None:
    assert set(topology.nodes()) == set(floors.datasheets())
    for name, limits in floors.datasheets().items():
        # NVLink 3, 4 and 5 have 25, 25 and 50 GB/s a link and direction.
        node = topology.nodes()[name]
        per_link = {3: 25.0, 4: 25.0, 5: 50.0}[node.nvlink]
        assert node.links * per_link == node.link_gb_s == limits.link_gb_s
        assert (node.gpu, node.hbm_gb_s) == (limits.gpu, limits.hbm_gb_s)


def test_a_class_of_gpus_is_described_by_its_datasheet() -> None:
    text = hardware_text(gpus("NVIDIA H200", 4, 385.0))
    for told in (
        *("4 x NVIDIA H200 SXM", "141 GB of HBM3e at 4,800 GB/s", "NVLink 4", "18 links"),
        *("450 GB/s in each direction", "switch (NVSwitch)", "measured: 385 GB/s"),
    ):
        assert told in text, told


@pytest.mark.parametrize(
    ("count", "pair", "says"),
    [
        (4, 385.0, "switch (NVSwitch)"),
        (4, 150.0, "mesh of direct links"),
        (4, None, "has not been measured"),
        (8, None, "switch (NVSwitch)"),
        (8, 60.0, "mesh of direct links"),
        (2, 385.0, "The two have the whole"),
        (2, 150.0, "mesh of direct links"),
        (2, None, "has not been measured"),
    ],
)
def test_the_wiring_is_as_measured_else_as_boards_are_sold(
    count: int, pair: float | None, says: str
) -> None:
    wirings = (
        "switch (NVSwitch)",
        "mesh of direct links joins",
        "mesh of direct links:",
        "The two",
    )
    text = hardware_text(gpus("NVIDIA H100 80GB HBM3", count, pair))
    assert says in text
    assert sum(one in text for one in wirings) == 1


@pytest.mark.parametrize("name", ["NVIDIA H200", "NVIDIA B200", "NVIDIA GeForce RTX 9090"])
def test_multicast_is_never_allowed(name: str) -> None:
    assert topology.NO_MULTICAST in hardware_text(gpus(name, 8))


def test_what_is_not_known_is_not_claimed() -> None:
    text = hardware_text(gpus("NVIDIA GeForce RTX 9090", 4))
    assert "4 x NVIDIA GeForce RTX 9090" in text
    assert "not in the site's datasheets" in text
    assert "GB/s" not in text
    processors = hardware_text(HardwareClass("cpu", "CPU", "cpu", 8))
    assert "No GPU and no NVLink" in processors
    assert "Up to 8 ranks" in processors


@pytest.mark.parametrize(
    ("count", "ranks"), [(2, "2 ranks"), (4, "2 or 4 ranks"), (7, "2 or 4"), (8, "2, 4 or 8 ranks")]
)
def test_a_problem_adds_its_ranks_and_who_talks_to_whom(count: int, ranks: str) -> None:
    text = problem_text(gpus("NVIDIA H200", count), PAYLOAD)
    assert text
    assert text.startswith(hardware_text(gpus("NVIDIA H200", count)))
    assert f"runs on {ranks}" in text
    assert text.endswith("a ring of all ranks.")


def test_a_problem_for_more_ranks_is_not_described() -> None:
    assert problem_text(gpus("NVIDIA H200", 2), {**PAYLOAD, "world_sizes": [4, 8]}) is None


@pytest.mark.django_db
def test_page_twin_and_api_say_the_same(problem: Problem, client: Client, api: Api) -> None:
    factory.make_judged(factory.make_submission(), problem)
    told = api().get(f"/api/v1/problems/{problem.slug}").json()["hardware_topology"]
    assert [row["hardware"] for row in told] == ["cpu", "h200x2", "h200x4"]
    assert client.get("/problems/1-allreduce.json").json()["hardware_topology"] == told
    shown = client.get("/problems/1-allreduce").content.decode()
    for row in told:
        assert row["text"].replace("'", "&#39;") in shown
    own = client.get("/hardware/h200x4.json").json()["topology"]
    assert own == hardware_text(topologies.every_class()["h200x4"])
    assert told[2]["text"].startswith(own)
    assert own in client.get("/hardware/h200x4").content.decode()


@pytest.mark.django_db
def test_the_hosts_own_measurement_goes_before_the_releases(tmp_path: Path) -> None:
    register("h200x4", "4 x NVIDIA H200")
    assert "NVSwitch" in hardware_text(topologies.every_class()["h200x4"])
    data: dict[str, Any] = json.loads(SHIPPED.read_text())
    for row in data["measurements"]:
        if row["quantity"] == "link":
            row["median"] = 140.0
    slow = tmp_path / "slow.json"
    slow.write_text(json.dumps(data))
    call_command("load_calibration", "h200x4", str(slow))
    assert "mesh of direct links: a pair" in hardware_text(topologies.every_class()["h200x4"])


@pytest.mark.django_db
def test_a_new_class_of_hardware_is_a_new_version_of_the_data() -> None:
    before = DataVersion.objects.current()
    register("h100x8", "8 x NVIDIA H100 80GB HBM3")
    version = DataVersion.objects.current()
    assert version > before
    register("h100x8", "8 x NVIDIA H100 80GB HBM3")
    assert DataVersion.objects.current() == version
    assert Hardware.objects.get().slug in topologies.every_class()
