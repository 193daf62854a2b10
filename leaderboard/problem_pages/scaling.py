"""Reads how the speedup at one problem changes with its size, and with the number of ranks."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace

from leaderboard.metrics.telling_apart import Submitted, names_of
from leaderboard.models import Hardware, Problem, Summary
from leaderboard.models.summaries import SummaryQuerySet
from leaderboard.read_model.boards import Setting
from leaderboard.read_model.problem_results import SettingTotals
from problems.topology import gpu_called

# The name of a size, or a number of ranks.
Place = str | int
# Speedups by what is on the x axis, of each line.
Lines = dict[str, list[tuple[Place, float]]]
WHO = ("submission__model__name", "submission__harness")


def sizes_vary(stood: Sequence[SettingTotals], setting: Setting | None) -> bool:
    """Return whether something was solved at several sizes, all else equal."""
    if setting is None:
        return False
    solved = [one.setting for one in stood if one.solved]
    alike = {one for one in solved if replace(one, size=setting.size) == setting}
    return setting in alike and len(alike) > 1


def ranks_vary(stood: Sequence[SettingTotals], setting: Setting | None) -> bool:
    """Return whether something was solved on several numbers of one GPU, all else equal."""
    solved = [one for one in stood if one.solved]
    here = next((one for one in solved if one.setting == setting), None)
    if here is None:
        return False
    gpu = gpu_called(here.hardware__title)
    alike = {
        one.world_size
        for one in solved
        if gpu_called(one.hardware__title) == gpu and _but_ranks(one) == _but_ranks(here)
    }
    return len(alike) > 1


def _but_ranks(one: SettingTotals) -> Setting:
    return replace(one.setting, hardware_id="", world_size=0)


def over_sizes(problem: Problem, setting: Setting | None) -> Lines:
    """Return the best speedup of each submission over sizes, all else equal; one query."""
    if setting is None:
        return {}
    own = _of_models(problem, setting, "size").filter(best_speedup__isnull=False)
    used = ("best_run__kernel__backend", "size", "best_speedup")
    found: dict[int, list[tuple[Place, float]]] = {}
    who: dict[int, Submitted] = {}
    for model, harness, number, backend, size, speedup in own.values_list(
        *WHO, "submission_id", *used
    ):
        found.setdefault(number, []).append((size, speedup))
        who[number] = Submitted(model, harness, number, (backend,))
    return dict(zip(names_of(who.values()), found.values(), strict=True))


def over_ranks(problem: Problem, setting: Setting | None, classes: Iterable[str]) -> Lines:
    """Return the speedup of each kernel over numbers of ranks, on these classes of hardware, all
    else equal; one query. The same source by the same model and harness is one kernel, in however
    many submissions; judged more than once on as many ranks, it has the median."""
    if setting is None:
        return {}
    own = _of_models(problem, setting, "hardware_id", "world_size").filter(correct__gte=1)
    found: dict[str, dict[int, list[float]]] = {}
    rows = own.filter(hardware__in=list(classes)).values_list(*WHO, "world_size", "attempts")
    for model, harness, ranks, attempts in rows:
        for entry in attempts:
            if entry["speedup"] is not None:
                name = f"{model} ({harness}, {entry['kernel'][:10]})"
                found.setdefault(name, {}).setdefault(ranks, []).append(entry["speedup"])
    return {name: _medians(by_ranks) for name, by_ranks in found.items()}


def classes_like(setting: Setting) -> tuple[str, Mapping[str, str]]:
    """Return the name of this setting's GPU, and the titles of all hardware that has it; one
    query."""
    titles = dict(Hardware.objects.values_list("slug", "title"))
    gpu = gpu_called(titles[setting.hardware_id])
    return gpu, {slug: title for slug, title in titles.items() if gpu_called(title) == gpu}


def _of_models(problem: Problem, setting: Setting, *but: str) -> SummaryQuerySet:
    same = {name: value for name, value in asdict(setting).items() if name not in but}
    own = Summary.objects.shown().filter(problem=problem, **same)
    return own.filter(submission__model__is_baseline=False).order_by("submission_id", *but)


def _medians(speedups: Mapping[int, Sequence[float]]) -> list[tuple[Place, float]]:
    return [(ranks, statistics.median(found)) for ranks, found in speedups.items()]
