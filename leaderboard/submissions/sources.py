"""Checks a handed-in kernel before it is stored: text, for a known problem, with an entry point."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import PurePath
from typing import Any

from evaluator.messages.entry import ENTRY, has_entry
from evaluator.messages.source_files import MANIFEST, MOST_BYTES, is_joined, parts_of
from leaderboard.kit.request_error import Faults, RequestError, together
from leaderboard.models import Problem, Upload
from leaderboard.models.choices import BACKENDS
from leaderboard.models.submissions import MAX_STEP_BUDGET
from leaderboard.submissions.archives import (
    MAX_SOURCE_BYTES,
    Member,
    Unpacked,
    read_archive,
    shown,
    told_limit,
)
from leaderboard.submissions.attempt_archives import NOTHING, Told, told_by
from leaderboard.submissions.kernel_folders import by_folder, checked_manifest, joined_source
from leaderboard.submissions.kernel_needs import backend_found
from leaderboard.submissions.trees import (
    BACKEND,
    Tree,
    backend_called,
    folder_called,
    is_withdrawn,
    published_number,
    slug_today,
    tree_of,
)

# What messages call a source that came in a field of a request, not in a file.
OF_A_REQUEST = "source"
MAX_ATTEMPT = 100
_BACKENDS = [value for value, _ in BACKENDS]
_NAME = re.compile(
    rf"(?:(?P<number>\d{{1,4}})_)?(?P<slug>[a-z]\w*?)(?:_(?P<backend>{BACKEND}))?\.py", re.ASCII
)
_ATTEMPT = re.compile(r"attempt_(\d{1,3})", re.ASCII)
# In an archive of attempts the folder names the problem.
_STEP = re.compile(rf"step_(?P<step>\d{{1,5}})_(?P<backend>{BACKEND})\.py", re.ASCII)
_PROBLEM = re.compile(r"(?P<number>\d{1,4})_(?P<slug>[a-z]\w*)", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """Holds a kernel as it was handed in. `problem` is a number or a slug, `slug` must agree with
    it.

    `where` is what messages call it: the file's path, or the field that held it. `tree` is what the
    name of a published tree says of it.
    """

    problem: str
    backend: str
    source: str
    attempt: int = 1
    step: int = 1
    slug: str | None = None
    where: str = OF_A_REQUEST
    tree: Tree | None = None

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.source.encode()).hexdigest()

    @property
    def is_withdrawn(self) -> bool:
        numbered = self.tree and self.slug
        return bool(numbered) and is_withdrawn(int(self.problem), str(self.slug))


@dataclass(frozen=True, kw_only=True)
class HandedIn:
    """Holds kernels as they were handed in, what was told of how they were made, and what could
    not be read. `is_part` where a request has kernels that nobody tried to read; `upload` where
    they came in parts."""

    candidates: Sequence[Candidate]
    told: Told = NOTHING
    fault: RequestError | None = None
    is_part: bool = False
    upload: Upload | None = None


def handed_in(unpacked: Unpacked, attempt: int) -> HandedIn:
    """Return the candidates of an archive or a folder and what `told_by` returns, with every file
    that cannot be read.

    A folder `attempt_3` says which attempt its files are; elsewhere it is `attempt`. A file
    `step_02_cuda.py` is a revision of an attempt at the problem that a folder around it names.
    """
    faults, told, members = Faults(), NOTHING, unpacked.members
    kernels = [member for member in members if not told_limit(member.path)]
    found, errors = _candidates(kernels, attempt)
    if unpacked.fault:
        faults.found.append(unpacked.fault)
    if errors := {**unpacked.errors, **errors}:
        faults.found.append(combined(errors))
    with faults.gathered():
        told = told_by([member for member in members if told_limit(member.path)])
    fault = together(faults.found) if faults.found else None
    return HandedIn(candidates=found, told=told, fault=fault)


def kernels_in(fields: Mapping[str, Any]) -> HandedIn:
    """Return the kernels in the checked fields of a form or a request, with what could not be
    read."""
    attempt = fields.get("attempt") or 1
    try:
        if archive := fields.get("archive"):
            return handed_in(read_archive(archive.file), attempt)
        source = decoded(fields["source"].encode())
    except RequestError as error:
        return HandedIn(candidates=[], fault=error)
    backend = fields.get("backend") or backend_found(source)
    named = {"problem": fields["problem"], "backend": backend, "step": fields.get("step") or 1}
    return HandedIn(candidates=[Candidate(**named, source=source, attempt=attempt)])


def _candidates(
    members: Sequence[Member], attempt: int
) -> tuple[list[Candidate], dict[str, RequestError]]:
    """Return the candidates of files, and by file what keeps others from being one."""
    found, errors = [], {}
    for member in members:
        try:
            if member.folder is None:
                found.append(from_member(member, attempt))
        except RequestError as error:
            errors[shown(str(member.path))] = error
    for folder, files in by_folder(members).items():
        texts: dict[PurePath, str] = {}
        try:
            for member in files:
                texts[member.path] = decoded(member.data)
            found.append(_from_folder(folder, texts, attempt))
        except RequestError as error:
            errors[shown(str(member.path if len(texts) < len(files) else folder))] = error
    return found, errors


def _from_folder(folder: PurePath, texts: dict[PurePath, str], attempt: int) -> Candidate:
    """Return the candidate that the files of a folder are, by its manifest and its name."""
    source, manifest = joined_source(folder, texts)
    name = _NAME.fullmatch(f"{folder.name}.py")
    name = name if name and (name["number"] or name["backend"]) else None
    problem = manifest.problem or (name and (name["number"] or name["slug"])) or ""
    if not problem:
        says = f"{MANIFEST} of {shown(str(folder))} names no problem."
        raise RequestError("bad_manifest", says, 'Write a line as `problem = "allreduce"`.')
    called = manifest.backend or (name and name["backend"])
    numbered = folder_called(folder / MANIFEST, _ATTEMPT)
    return Candidate(
        problem=str(int(problem)) if problem.isdecimal() else problem,
        slug=name["slug"] if name and name["number"] and not manifest.problem else None,
        backend=backend_called(called) if called else backend_found(source),
        source=source,
        attempt=int(numbered[1]) if numbered else attempt,
        where=shown(str(folder)),
    )


def from_member(member: Member, attempt: int) -> Candidate:
    """Return the candidate that a file is, by its name; raise RequestError."""
    tree, step = tree_of(member.path), _STEP.fullmatch(member.path.name)
    name = folder_called(member.path, _PROBLEM) if step else _NAME.fullmatch(member.path.name)
    backend = name and ((step or name)["backend"] or (tree and tree.backend))
    if not name or not backend:
        raise RequestError(
            "bad_file_name",
            f"{shown(member.path.name)} is not called <number>_<slug>_<backend>.py.",
            f"Rename or remove it: 1_allreduce_cuda.py. Backends are {', '.join(_BACKENDS)}.",
        )
    folder = folder_called(member.path, _ATTEMPT)
    return Candidate(
        problem=str(int(name["number"])) if name["number"] else name["slug"],
        slug=name["slug"] if name["number"] else None,
        backend=backend_called(backend),
        source=decoded(member.data),
        attempt=int(folder[1]) if folder else attempt,
        step=int(step["step"]) if step else 1,
        where=shown(str(member.path)),
        tree=tree,
    )


def decoded(data: bytes) -> str:
    """Return a source as text; raise RequestError if it is too large, not UTF-8, or holds NUL."""
    most = MOST_BYTES if is_joined(data) else MAX_SOURCE_BYTES
    if len(data) > most:
        limit = f"{most >> 10} KiB"
        fix = "Remove what the kernel does not need."
        says = f"The source is larger than {limit}."
        raise RequestError("too_large", says, fix, status=413, fields={"source": says})
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        says = f"The source is not UTF-8 (byte {error.start})."
        raise RequestError("not_utf8", says, "Save it as UTF-8.", fields={"source": says}) from None
    if "\0" in text:
        says, fix = "The source holds a NUL byte.", "Send Python source text."
        raise RequestError("nul_byte", says, fix, fields={"source": says})
    return text


def checked_problem(candidate: Candidate, problems: Mapping[str, Problem]) -> Problem:
    """Return a candidate's problem, of `problems` by number and slug. Raises RequestError with
    all that is wrong.

    A file among others is judged as it is, an empty one too: it is the answer that a model gave.
    """
    faults, problem = Faults(), None
    with faults.gathered():
        problem = _problem_of(candidate, problems)
    for name, value, most in (
        ("attempt", candidate.attempt, MAX_ATTEMPT),
        ("step", candidate.step, MAX_STEP_BUDGET),
    ):
        if not 1 <= value <= most:
            says, fix = f"There is no {name} {value}.", f"Number {name}s from 1 to {most}."
            faults.found.append(RequestError(f"bad_{name}", says, fix, fields={name: says}))
    is_whole = bool(parts_of(candidate.source))
    with faults.gathered():
        if is_whole:
            checked_manifest(candidate.source)
    is_single = candidate.where == OF_A_REQUEST and not is_whole
    if is_single and not has_entry(candidate.source):
        says = f"The source never defines `{ENTRY}`."
        fix = f"Define `def {ENTRY}(...)` with the parameters of the problem's reference."
        faults.found.append(RequestError("no_entry_point", says, fix, fields={"source": says}))
    faults.raise_any()
    assert problem is not None
    return problem


def _problem_of(candidate: Candidate, problems: Mapping[str, Problem]) -> Problem:
    problem = problems.get(candidate.problem)
    if candidate.slug is None or (problem and problem.slug == candidate.slug):
        if problem is None:
            raise _unknown_problem(candidate, problems)
        return problem
    if candidate.tree and (earlier := _earlier_number(candidate, problems)):
        return earlier
    if problem is None:
        raise _unknown_problem(candidate, problems)
    raise RequestError(
        "name_disagrees",
        f"Problem {problem.number} is {problem.slug}, not {shown(candidate.slug)}.",
        f"{_nearest(candidate, problems)}Call the file"
        f" {problem.number}_{problem.slug}_{candidate.backend}.py if it is for that one.",
        fields={"problem": f"is {problem.slug}"},
    )


def _earlier_number(candidate: Candidate, problems: Mapping[str, Problem]) -> Problem | None:
    """Return the problem that the published trees have under this number and name."""
    number = int(candidate.problem)
    problem = problems.get(slug_today(number, str(candidate.slug)))
    return problem if problem and published_number(problem.number) == number else None


def combined(errors: Mapping[str, RequestError]) -> RequestError:
    """Return one error of several: the reader mends all of them at once."""
    where, first = next(iter(errors.items()))
    if len(errors) == 1:
        return first if where == OF_A_REQUEST else _named(where, first)
    return RequestError(
        first.code,
        f"{len(errors)} files cannot be accepted; nothing was stored.",
        "Mend those named and send all again.",
        status=max(error.status for error in errors.values()),
        fields={where: f"{each.message} {each.fix}" for where, each in errors.items()},
    )


def _named(where: str, error: RequestError) -> RequestError:
    """Return an error about a file that names it as its field, and in its message."""
    is_named = where.rpartition("/")[2] in error.message
    message = error.message if is_named else f"{where}: {error.message}"
    fields = {where: f"{error.message} {error.fix}"}
    return RequestError(error.code, message, error.fix, status=error.status, fields=fields)


def _unknown_problem(candidate: Candidate, problems: Mapping[str, Problem]) -> RequestError:
    name = candidate.problem if candidate.slug is None else f"{candidate.problem}_{candidate.slug}"
    return RequestError(
        "unknown_problem",
        f"There is no problem {shown(name)!r}.",
        f"{_nearest(candidate, problems)}Give a number or a slug from /api/v1/problems.",
        fields={"problem": "unknown"},
    )


def _nearest(candidate: Candidate, problems: Mapping[str, Problem]) -> str:
    """Ask, as a question, for the problems whose names are most like a candidate's."""
    near = get_close_matches(candidate.slug or candidate.problem, problems, n=3, cutoff=0.5)
    names = [f"{problems[slug].number}_{slug}" if candidate.slug else slug for slug in near]
    return f"Did you mean {' or '.join(names)}? " if names else ""
