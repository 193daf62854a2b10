"""Takes in what training wants judged: batches of kernels, none of which is a submission."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import Count, Q

from evaluator.messages.job import Device, Profile
from leaderboard.kit.request_error import RequestError
from leaderboard.models import Hardware, Judgement, Problem, TrainingGroup, WorkerHost
from leaderboard.models.choices import FULL, SHARED
from leaderboard.models.teams import accounts_of, person_of
from leaderboard.models.training import MOST_GROUPS, MOST_OF_A_GROUP, new_secret
from leaderboard.submissions.kernel_needs import backend_found, needs_on_gpus
from leaderboard.submissions.practice import QuotaSpent, in_turn
from leaderboard.submissions.sources import Candidate, checked_problem, decoded
from leaderboard.submissions.target_selection import Machines, TargetRequest, target_for

MOST_ITEMS = 64
# What a tier asks of the judge: `check` finds out what is right, `time` measures it, too.
PLACEMENTS = {"check": SHARED, "time": FULL}
Fields = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Taken:
    """Says of an item that it is there; or, with `refusal`, why it is not taken."""

    key: str
    refusal: RequestError | None = None


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Holds what became of a batch, in its order, and the hardware that has new work."""

    taken: Sequence[Taken]
    queues: frozenset[str]


def accept(owner: AbstractBaseUser, items: Sequence[Fields]) -> Batch:
    """Queue a judgement of each item that can be judged and is not there yet.

    An item that cannot be judged is refused alone. Raises RequestError where a key occurs twice,
    and QuotaSpent where too many are in flight: then nothing is stored.
    """
    keys = [item["id"] for item in items]
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        says = f"The id {twice} occurs more than once."
        raise RequestError("duplicate_id", says, "Give each item an id of its own.")
    own = Judgement.objects.filter(owner=owner.pk, key__in=keys)
    known = set(own.values_list("key", flat=True))
    # Before anything is read that takes long, and again once nobody else can add to it.
    _check_quota(accounts_of(person_of(owner.pk)), len(items) - len(known))
    made = _made(items, known)
    with transaction.atomic():
        accounts = in_turn(owner)
        there = dict(own.values_list("key", "digest"))
        new = [one for one in made.values() if isinstance(one, Judgement) and one.key not in there]
        _check_quota(accounts, len(new))
        new, full = _with_secrets(owner.pk, new, items)
        for one in new:
            one.owner_id = owner.pk
        Judgement.objects.bulk_create(new, ignore_conflicts=True)
    taken = [_taken(item, made.get(item["id"]), there, full) for item in items]
    return Batch(taken=taken, queues=frozenset(str(one.hardware_id) for one in new))


def _made(items: Sequence[Fields], known: Container[str]) -> dict[str, Judgement | RequestError]:
    """Return by key, of the items that are not known, the judgement that each asks for, not stored,
    or why there is none."""
    items = [item for item in items if item["id"] not in known]
    names = {item["problem"] for item in items}
    numbers = {int(name) for name in names if name.isdecimal() and len(name) < 5}
    found = Problem.objects.filter(Q(slug__in=names) | Q(number__in=numbers))
    problems = {str(one.number): one for one in found}
    problems |= {one.slug: one for one in problems.values()}
    served = set(WorkerHost.objects.serving().values_list("queue", flat=True))
    machines = Machines(known=list(Hardware.objects.all()), served=served)
    made: dict[str, Judgement | RequestError] = {}
    for item in items:
        try:
            made[item["id"]] = _judgement(item, problems, machines)
        except RequestError as error:
            made[item["id"]] = error
    return made


def _judgement(item: Fields, problems: Mapping[str, Problem], machines: Machines) -> Judgement:
    source = decoded(item["source"].encode(errors="surrogatepass"))
    backend = item.get("backend") or backend_found(source)
    # Whether it defines `solution` is the judge's to say: to parse it takes long.
    asked = {"problem": item["problem"], "backend": backend, "source": source}
    candidate = Candidate(**asked, where=item["id"])
    problem = checked_problem(candidate, problems)
    names = ("device", "hardware", "world_size", "size", "dtype")
    wanted = TargetRequest(
        **{name: item.get(name) for name in names},
        profile=Profile.HARDENED.value,
        placement=PLACEMENTS[item["tier"]],
    )
    target = target_for(candidate, problem, wanted, machines.for_all([problem]))
    needs = ""
    if target.device != Device.CPU:
        required = problem.payload.get("requirements", {})
        of_target = (target.world_size, target.placement)
        needs = f" {' '.join(sorted(needs_on_gpus(source, backend, required, *of_target)))} "
    names_of_target = ("device", "world_size", "size", "dtype", "profile", "placement")
    return Judgement(
        key=item["id"],
        digest=_digest(item),
        problem=problem,
        problem_digest=problem.digest,
        source_digest=candidate.digest,
        packed=zlib.compress(source.encode(), 1),
        backend=backend,
        hardware_id=target.hardware,
        needs=needs,
        **{name: getattr(target, name) for name in names_of_target},
    )


def _digest(item: Fields) -> str:
    return hashlib.sha256(json.dumps(dict(item), sort_keys=True).encode()).hexdigest()


def _check_quota(accounts: Sequence[int], more: int) -> None:
    most = settings.PKB_TRAINING_IN_FLIGHT
    there = Judgement.objects.open().filter(owner__in=accounts).count()
    if more and there + more > most:
        message = f"{there} judgements of yours are in flight, and {more} would come; {most} may."
        raise QuotaSpent("training_quota", message)


def _check_groups(owner: int, more: int) -> None:
    if more and TrainingGroup.objects.filter(owner=owner).count() + more > MOST_GROUPS:
        message = (
            f"An account may have {MOST_GROUPS} groups at a time; they end with their results."
        )
        raise QuotaSpent("training_groups", message)


def _with_secrets(
    owner: int, new: Sequence[Judgement], items: Sequence[Fields]
) -> tuple[list[Judgement], set[str]]:
    """Give each its group's secret, or one of its own. Returns those that may be stored, and the
    keys of those whose group is full."""
    group_of = {item["id"]: item.get("group_id") for item in items}
    names = {str(name) for one in new if (name := group_of[one.key])}
    _check_groups(owner, len(names))
    shared = TrainingGroup.objects.secrets_of(owner, names)
    of_groups = Judgement.objects.filter(owner=owner, group__in=names).order_by()
    counts = Counter(dict(of_groups.values_list("group").annotate(count=Count("pk"))))
    kept, full = list[Judgement](), set[str]()
    for one in new:
        name = group_of[one.key]
        one.group, one.secret = name or "", shared[name] if name else new_secret()
        if name:
            counts[name] += 1
        if name and counts[name] > MOST_OF_A_GROUP:
            full.add(one.key)
        else:
            kept.append(one)
    return kept, full


def _taken(
    item: Fields, made: Judgement | RequestError | None, there: Mapping[str, str], full: set[str]
) -> Taken:
    key = item["id"]
    if isinstance(made, RequestError):
        return Taken(key=key, refusal=made)
    if key in full:
        says = f"The group has {MOST_OF_A_GROUP} judgements, which is the most."
        return Taken(key=key, refusal=RequestError("group_full", says, "Use another group_id."))
    if key in there and there[key] != _digest(item):
        says = "This id came with another kernel or setting before."
        return Taken(key=key, refusal=RequestError("id_reused", says, "Use a new id."))
    return Taken(key=key)


def cancel(owner: AbstractBaseUser, keys: Sequence[str]) -> int:
    """Forget an account's judgements that no host has begun; return how many there were."""
    own = Judgement.objects.queued().filter(owner=owner.pk, key__in=keys)
    return own.delete()[0]
