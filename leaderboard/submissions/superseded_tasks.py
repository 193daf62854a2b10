"""Finds kernels that were written for an older form of their task, by names in published trees.

What is found takes away only: such a kernel counts neither as tried, solved nor failed. So what
an archive tells of names before they were converted is believed, where it fits its kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from leaderboard.kit.request_error import RequestError
from leaderboard.models import Problem
from leaderboard.submissions.archives import ATTEMPTS, Member, shown
from leaderboard.submissions.attempt_archives import NOTHING, AttemptLine, Place
from leaderboard.submissions.sources import Candidate, from_member
from leaderboard.submissions.trees import is_name_of, older_task, published_number

Named = tuple[Candidate, Problem]


def older_tasks(
    named: Sequence[Named], lines: Mapping[Place, AttemptLine] = NOTHING.lines
) -> list[str]:
    """Return of each candidate how the task differed that it was written for; empty where that is
    today's. Raises RequestError where a line says that a kernel had a name that it cannot have had.

    The published trees are known by their numbers and names. 26 kept both, so its tree tells: a
    kernel is of an older task if any of its tree has an older name, unless its own is of today.
    Samples of a tree have the same name, and may be of another time.
    """
    before = [(_before(one, problem, lines), problem) for one, problem in named]
    return [task or was for task, was in zip(_by_names(named), _by_names(before), strict=True)]


def _by_names(named: Sequence[Named]) -> list[str]:
    older = {(one.tree, one.attempt) for one, problem in named if _has_older_name(one, problem)}
    return [
        older_task(problem.slug)
        if (one.tree, one.attempt) in older and not _has_newer_number(one, problem)
        else ""
        for one, problem in named
    ]


def _before(one: Candidate, problem: Problem, lines: Mapping[Place, AttemptLine]) -> Candidate:
    """Return a candidate as it was called in the tree that it was converted from, or in none."""
    line = lines.get((problem.number, one.attempt, one.step))
    if line is None or not line.converted_from:
        return replace(one, tree=None)
    path = PurePosixPath(line.converted_from)
    try:
        was = from_member(Member(path=path, content=b""), one.attempt)
    except RequestError:
        raise _no_such_name(line, problem, one) from None
    numbered = was.tree is not None and was.slug is not None and was.backend == one.backend
    if not numbered or not is_name_of(int(was.problem), str(was.slug), problem):
        raise _no_such_name(line, problem, one)
    return was


def _no_such_name(line: AttemptLine, problem: Problem, one: Candidate) -> RequestError:
    said = f"{ATTEMPTS}, line {line.number}: converted_from is {shown(line.converted_from)!r}"
    example = f"solutions_{one.backend}/{problem.number}_{problem.slug}_{one.backend}.py"
    return RequestError(
        "bad_attempts",
        f"{said}, by which no published tree calls a kernel of problem {problem.number}.",
        f"Give the tree's folder and the file's name, as in {example}, or leave it out.",
    )


def _has_older_name(candidate: Candidate, problem: Problem) -> bool:
    """Return True for a numbered name in a tree that is not today's of its problem."""
    today = (str(problem.number), problem.slug)
    is_numbered = candidate.tree is not None and candidate.slug is not None
    return is_numbered and (candidate.problem, candidate.slug) != today


def _has_newer_number(candidate: Candidate, problem: Problem) -> bool:
    """Return True for a number that only today's name of the problem has."""
    return candidate.problem == str(problem.number) != str(published_number(problem.number))
