"""A run waits, at no cost to its model, for a host that has what its kernel needs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from leaderboard.kit.request_error import RequestError
from leaderboard.models import Problem, Run, Status, WorkerHost
from leaderboard.models.abilities import waiting_for
from leaderboard.runs import hosts
from leaderboard.submissions.kernel_needs import needs_on_gpus, ranks_of
from leaderboard.submissions.queue import Target, enqueue
from tests.leaderboard import factory
from tests.leaderboard.running import HELLO, claim, fresh, say_hello

pytestmark = pytest.mark.django_db

MULTICAST = "fast(hdl.multicast_ptr)"
PLAIN = ["nccl", "nvcc", "peer_access", "symmetric_memory", "triton"]
EIGHT_RANKS = 'C = """\n#include "kittens.cuh"\nconstexpr int NUM_DEVICES = 8;\n"""'
GPUS = replace(HELLO, queue="h200x4", hardware="4 x NVIDIA H200", abilities=PLAIN)
TARGET = Target(
    hardware="h200x4",
    device="cuda",
    world_size=4,
    size="standard",
    dtype="bfloat16",
    profile="hardened",
)


def queued(problem: Problem, source: str, backend: str = "pytorch", **changes: Any) -> Run:
    hosts.register("h200x4", "4 x NVIDIA H200")
    submission = factory.make_submission()
    kernel = factory.make_kernel(submission, problem, source=source)
    kernel.backend = backend
    (run,) = enqueue([(kernel, replace(TARGET, **changes))])
    return run


def test_a_run_is_offered_to_who_has_what_it_needs(problem: Problem, bells: list[object]) -> None:
    run = queued(problem, MULTICAST)
    Run.objects.update(rung_at=None)
    bells.clear()
    say_hello(GPUS)
    assert bells == []
    with pytest.raises(RequestError, match="finished or belongs"):
        claim(run, "h")
    say_hello(replace(GPUS, host="able", abilities=[*PLAIN, "multicast"]))
    assert bells == [(run.id, run.hardware_id)]
    assert claim(run, "able").tries == 1


def test_a_run_that_needs_nothing_special_is_offered_to_all(problem: Problem) -> None:
    run = queued(problem, "dist.all_reduce(x)")
    say_hello(GPUS)
    assert waiting_for([run]) == {}
    assert claim(run, "h").tries == 1


def test_a_host_that_tells_no_abilities_is_offered_all(problem: Problem) -> None:
    run = queued(problem, MULTICAST)
    say_hello(replace(GPUS, abilities=None))
    assert waiting_for([run]) == {}
    assert claim(run, "h").tries == 1


def test_what_no_host_has_is_said_and_the_run_waits(problem: Problem, client: Client) -> None:
    run = queued(problem, MULTICAST)
    assert waiting_for([run]) == {}, "nobody has said yet what there is"
    say_hello(GPUS)
    said = waiting_for([run])[run.pk]
    needed = "NVLink multicast (multicast_ptr, line 1)"
    assert said.startswith(f"The kernel needs {needed}, which no host of h200x4 offers.")
    body = client.get(f"/api/v1/runs/{run.id}").json()
    assert (body["status"], body["tries"], body["waits_for"]) == ("queued", 0, said)
    assert client.get(f"/runs/{run.id}.json").json()["waits_for"] == said
    assert said in client.get(f"/runs/{run.id}").content.decode()
    Run.objects.filter(pk=run.pk).update(needs="")
    assert client.get(f"/api/v1/runs/{run.id}").json()["waits_for"] is None


def test_a_source_that_is_withheld_is_not_quoted(problem: Problem) -> None:
    run = queued(problem, MULTICAST)
    say_hello(GPUS)
    run.kernel.submission.withholds_source = True
    assert "needs NVLink multicast, which" in waiting_for([run])[run.pk]


def test_a_later_run_does_not_wait_behind_one_that_nobody_can_judge(
    problem: Problem, client: Client
) -> None:
    run = queued(problem, MULTICAST)
    say_hello(GPUS)
    later = factory.make_run(run.kernel, status=Status.QUEUED)
    Run.objects.filter(pk=later.pk).update(hardware="h200x4")
    assert client.get(f"/api/v1/runs/{later.id}").json()["queue_position"] == 1


def test_a_host_with_new_abilities_is_asked_again(problem: Problem) -> None:
    run = queued(problem, MULTICAST)
    say_hello(GPUS)
    say_hello(replace(GPUS, abilities=[*PLAIN, "multicast"]))
    assert WorkerHost.objects.get().abilities == [*PLAIN, "multicast"]
    assert claim(run, "h").tries == 1


def test_a_source_for_eight_ranks_asks_for_eight(problem: Problem) -> None:
    assert ranks_of(EIGHT_RANKS, "parallelkittens") == 8
    assert ranks_of(EIGHT_RANKS, "pytorch") is None
    run = queued(problem, EIGHT_RANKS, "parallelkittens")
    say_hello(replace(GPUS, abilities=[*PLAIN, "thunderkittens"]))
    assert "number of ranks that its source fixes" in waiting_for([run])[run.pk]
    assert "other_ranks" not in needs_on_gpus(EIGHT_RANKS, "parallelkittens", {}, 8)


def test_a_run_on_a_cpu_needs_nothing(problem: Problem) -> None:
    hosts.register("cpu", "2 x CPU")
    run = queued(problem, MULTICAST, hardware="cpu", device="cpu", world_size=2)
    assert fresh(run).needs == ""
