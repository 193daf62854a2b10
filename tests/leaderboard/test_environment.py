"""`/environment` and prompts tell the versions that hosts said hello with."""

from __future__ import annotations

from django.test import Client
from django.utils import timezone

from leaderboard.models import Problem, WorkerHost

VERSIONS = {"python": "3.13.1", "torch": "2.14.0+cu131", "einops": "0.9.0", "nvcc": "<b>13</b>"}


def _host(queue: str) -> None:
    WorkerHost.objects.create(
        host="a",
        queue=queue,
        hardware="4 x NVIDIA H200",
        isolation="bwrap",
        judge_version="10",
        versions=VERSIONS,
        last_seen_at=timezone.now(),
    )


def test_a_class_shows_what_its_host_said(db: None, client: Client) -> None:
    told = {row["hardware"]: row for row in client.get("/environment.json").json()["environments"]}
    assert told["h200x4"]["said_at"] is None
    assert told["h200x4"]["facts"]["Python"] == "3.12.3"
    _host("h200x4")
    told = {row["hardware"]: row for row in client.get("/environment.json").json()["environments"]}
    assert told["h200x4"]["versions"] == VERSIONS
    assert told["h200x4"]["imports"] == {"torch": "2.14.0+cu131", "einops": "0.9.0"}
    page = client.get("/environment").text
    assert "<code>einops</code> <bdi>0.9.0</bdi>" in page
    assert "<b>13</b>" not in page
    assert "h200x4,4 x NVIDIA H200,einops,0.9.0,True" in client.get("/environment.csv").text


def test_a_prompt_tells_the_versions_of_its_hardware(problem: Problem, client: Client) -> None:
    _host("h200x4")
    problem.payload |= {name: getattr(problem, name) for name in ("number", "slug", "title")}
    problem.save()
    address = "/api/v1/problems/1/prompt?dtype=float32&backend=triton&hardware="
    assert "PyTorch 2.14.0+cu131, CUDA 13.1" in client.get(f"{address}h200x4").json()["prompt"]
    assert "`einops` and `utils.triton_utils`" in client.get(f"{address}h200x4").json()["prompt"]
