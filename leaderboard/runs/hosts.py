"""Keeps track of the hosts that judge, and sweeps the queue with each of their hellos."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain

from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Now

from leaderboard.kit.doorbells import Bell, ring
from leaderboard.kit.request_error import RequestError
from leaderboard.models import (
    ApiToken,
    DataVersion,
    Decline,
    Hardware,
    Judgement,
    Run,
    TrainingGroup,
    Upload,
    WorkerHost,
)
from leaderboard.models.waiting import first_of, offered, used_lately
from leaderboard.runs import training
from leaderboard.runs.evaluation import give_up_lost
from leaderboard.runs.notices import deliver_later
from leaderboard.runs.report_checks import fits_class
from leaderboard.submissions import embargo

# `cpu`, `cpu-arm`: ranks are processes of one host. `h200x4`: that many devices of that kind; on
# one, `h200x1`, runs whose ranks share it.
_QUEUE = re.compile(r"(?P<cpu>cpu(-[a-z0-9]+)*)|[a-z0-9-]+x(?P<count>[1-9][0-9]?)")
CPU_WORLD_SIZE = 8
# A host judges one run at a time, so the bell need not ring for more than the next few.
RINGS_PER_HOST = 2
# What a hello tells of the host that its verdicts may depend on.
VERDICT_FACTS = ("hardware", "isolation", "judge_version", "versions", "abilities")


@dataclass(frozen=True, kw_only=True)
class Hello:
    """Holds what a host says of itself."""

    host: str
    queue: str
    hardware: str
    isolation: str
    judge_version: str
    versions: dict[str, str]
    abilities: list[str] | None = None


def record_hello(hello: Hello, token: ApiToken) -> WorkerHost:
    """Store that a host is alive, do the sweep, and return what is known of the host.

    A host that tells of something new, or was silent, may be able to judge what it declined. Raises
    RequestError for a queue with a wrong name, hardware of another class, a token that is not for
    this host and queue, and a host that is alive with another token.
    """
    host, queue = hello.host, hello.queue
    if not token.allows(queue=queue, host=host):
        raise _refused(f"The token is not for {queue} on {host}.", "Make one that is.")
    if not fits_class(queue, hello.hardware):
        raise _refused(f"{hello.hardware} is not {queue}.", "Listen to the queue of its class.")
    register(queue, hello.hardware)
    facts = {name: getattr(hello, name) for name in VERDICT_FACTS} | {"token": token.pk}
    known = WorkerHost.objects.alive().filter(host=host, queue=queue)
    before = known.values(*VERDICT_FACTS, "token").first()
    if before and before["token"] not in (None, token.pk):
        reason = f"{host} is alive with another token."
        raise _refused(reason, "Stop that worker first; it counts as alive for some seconds.")
    if before != facts:
        Decline.objects.forget(host, queue)
    own = WorkerHost.objects.filter(host=host, queue=queue)
    if own.values_list("versions", flat=True).first() != hello.versions:
        DataVersion.objects.bump()  # prompts tell them
    facts |= {"token": token, "last_seen_at": Now()}
    stored, _ = WorkerHost.objects.update_or_create(host=host, queue=queue, defaults=facts)
    sweep()
    deliver_later()
    return stored


def _refused(message: str, fix: str) -> RequestError:
    return RequestError("may_not_serve", message, fix, status=403)


def class_named(queue: str) -> tuple[str, int]:
    """Return the device and the most ranks of the class of hardware that a queue is called after.
    Raises RequestError for a queue with a wrong name."""
    match = _QUEUE.fullmatch(queue)
    count = int(match["count"] or CPU_WORLD_SIZE) if match else 0
    if match is None or not 1 <= count <= 64 or len(queue) > 32:
        raise RequestError(
            "bad_queue",
            f"{queue[:64]!r} does not name a class of hardware.",
            "Call a queue cpu, or <device>x<count> with a count from 1 to 64: h200x4.",
        )
    return "cpu" if match["cpu"] else "cuda", count


def register(queue: str, title: str) -> Hardware:
    """Return the class of hardware that listens to a queue, made if it is new. Raises RequestError
    for a queue with a wrong name."""
    device, count = class_named(queue)
    hardware, is_new = Hardware.objects.get_or_create(
        slug=queue, defaults={"title": title, "device": device, "max_world_size": count}
    )
    if is_new:
        DataVersion.objects.bump()  # problems name every class
    return hardware


def sweep() -> int:
    """Queue again what silent workers left, tell workers of waiting runs that they missed, and
    publish what is under an embargo no longer.

    Returns for how many runs they were told; only for what a living host may take that serves.
    """
    give_up_lost()
    training.give_up_lost()
    Judgement.objects.expire()
    TrainingGroup.objects.expire()
    Upload.objects.expire()
    embargo.publish_due()
    alive: dict[str, list[WorkerHost]] = {}
    for host in WorkerHost.objects.serving():
        alive.setdefault(host.queue, []).append(host)
    return ring([bell for queue, hosts in alive.items() for bell in _to_ring(queue, hosts)])


def ring_next(queue: str) -> int:
    """Tell workers of a queue what is to be judged next; returns of how many runs."""
    serving = list(WorkerHost.objects.serving().filter(queue=queue))
    return ring(list(_to_ring(queue, serving))) if serving else 0


def _to_ring(queue: str, hosts: list[WorkerHost]) -> Iterator[Bell]:
    quiet = Q(rung_at=None) | Q(rung_at__lt=Now() - timedelta(seconds=settings.PKB_RERING_S))
    waiting, used = Run.objects.queued().filter(hardware=queue), used_lately(queue)
    most = RINGS_PER_HOST * len(hosts)
    # Host by host: what one of them declined must not hide from it what is further back.
    found = [first_of(offered(waiting, host), used, most) for host in hosts]
    runs = dict.fromkeys(chain.from_iterable(found))
    for run_id in runs:
        # Only one of several sweeps at the same moment gets to ring.
        if Run.objects.queued().filter(quiet, pk=run_id).update(rung_at=Now()):
            yield run_id, queue
    if len(runs) < most:
        yield from _training_to_ring(queue, hosts, quiet, most - len(runs))


def _training_to_ring(queue: str, hosts: list[WorkerHost], quiet: Q, most: int) -> Iterator[Bell]:
    """Yield what training waits for: after all runs."""
    waiting = Judgement.objects.queued().filter(hardware=queue)
    found = [waiting.fit_for(host.abilities).next_ids(most) for host in hosts]
    for one in dict.fromkeys(chain.from_iterable(found)):
        if Judgement.objects.queued().filter(quiet, pk=one).update(rung_at=Now()):
            yield one, queue
