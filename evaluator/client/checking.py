"""Says of a kernel, without a site, what would be refused, what would fail, and what its hosts
need."""

from __future__ import annotations

import ast
import sys
from pathlib import PurePosixPath
from typing import NamedTuple

from ..messages.entry import ENTRY, UNREADABLE, has_entry, parsed
from ..messages.source_files import MOST_BYTES, Part, is_joined, parts_of
from .catalogue import BACKENDS, CPU_BACKENDS, Parameter, Problem, importable, problem_called
from .failures import Misused
from .sources import MAX_SOURCE_BYTES, Member, Named, named

CPU_RANKS = 2  # where nobody says another number; on GPUs the fewest that are ranked
SHARED_RANKS = 4
_UNKNOWN = (
    "it imports {}, which hosts of this release lack: /environment of the site lists packages"
)
REFUSED, FAILS, NOTE = "refused", "fails", "note"
_UNTOUCHED = f"`{ENTRY}` only raises NotImplementedError: fill it in"


class Finding(NamedTuple):
    """Says one thing of a kernel: that the site would refuse it, that it would fail, or a note."""

    kind: str
    text: str


class WantedSetting(NamedTuple):
    """Holds what a kernel is to be judged on; None leaves it to the site."""

    problem: str | None = None
    backend: str | None = None
    device: str | None = None
    world_size: int | None = None
    size: str | None = None
    dtype: str | None = None
    placement: str | None = None


class Checked(NamedTuple):
    """Holds what is known of a file. `needs` is None where it could not be found out."""

    path: str
    problem: str | None
    backend: str | None
    device: str | None
    needs: list[str] | None
    findings: list[Finding]

    @property
    def is_fine(self) -> bool:
        """Return whether nothing speaks against it."""
        return all(each.kind == NOTE for each in self.findings)


class _Known(NamedTuple):
    problem: Problem | None
    backend: str | None
    device: str


def checked(member: Member, wanted: WantedSetting, *, is_alone: bool) -> Checked:
    """Return what is found of a file; `is_alone` where it is handed in as one source."""
    known, findings = _known(member.path, wanted)
    source, more = _text(member.data)
    findings += [*more, *_setting_findings(known, wanted)]
    needs: list[str] | None = None
    if source is not None:
        findings += _entry_findings(source, known.problem, is_alone=is_alone)
        needs, more = _needs(source, known, wanted)
        findings += more
    name = known.problem.folder if known.problem else None
    device = known.device if known.backend else None
    return Checked(str(member.path), name, known.backend, device, needs, findings)


def _known(path: PurePosixPath, wanted: WantedSetting) -> tuple[_Known, list[Finding]]:
    """Return what a file's name and the caller say of a kernel."""
    said = named(path)
    problem, findings = _problem(path, said, wanted)
    backend = wanted.backend or (said.backend if said else None)
    if backend is None:
        findings.append(Finding(REFUSED, f"no backend is named; there are {', '.join(BACKENDS)}"))
    device = wanted.device or ("cpu" if backend in CPU_BACKENDS else "cuda")
    return _Known(problem, backend, device), findings


def _problem(
    path: PurePosixPath, said: Named | None, wanted: WantedSetting
) -> tuple[Problem | None, list[Finding]]:
    name = wanted.problem or (said.problem if said else "")
    if not name:
        shown = f"{path.name} is not called <number>_<slug>_<backend>.py; --problem names it"
        return None, [Finding(REFUSED, shown)]
    try:
        return problem_called(name), []
    except Misused as error:
        if said and said.is_of_tree:
            return None, [Finding(NOTE, f"{name} may be an older name, which the site knows")]
        return None, [Finding(REFUSED, f"{error.message} {error.fix}")]


def _text(data: bytes) -> tuple[str | None, list[Finding]]:
    most = MOST_BYTES if is_joined(data) else MAX_SOURCE_BYTES
    if len(data) > most:
        return None, [Finding(REFUSED, f"it is larger than {most >> 10} KiB")]
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        return None, [Finding(REFUSED, f"it is not UTF-8 (byte {error.start})")]
    if "\0" in text:
        return None, [Finding(REFUSED, "it holds a NUL byte")]
    return text, []


def _entry_findings(source: str, problem: Problem | None, *, is_alone: bool) -> list[Finding]:
    if parts := parts_of(source):
        return _manifest_findings(parts)
    if not has_entry(source):
        kind = REFUSED if is_alone else FAILS
        return [Finding(kind, f"it never defines `{ENTRY}`")]
    try:
        body = parsed(source).body
    except UNREADABLE as error:
        return [Finding(FAILS, f"it does not parse: {error}")]
    noted = _import_findings(body)
    defined = [each for each in body if isinstance(each, ast.FunctionDef) and each.name == ENTRY]
    if not defined:
        return noted
    found = [*noted, *([Finding(FAILS, _UNTOUCHED)] if _is_untouched(defined[-1]) else [])]
    if problem is None:
        return found
    return found + signature_findings(defined[-1].args, problem.parameters)


def _manifest_findings(parts: list[Part]) -> list[Finding]:
    """Return the faults of `pkb.toml`, and the files that do not parse."""
    found = []
    for part in parts:
        try:
            if part.path.endswith(".py"):
                parsed(part.text)
        except UNREADABLE as error:
            found.append(Finding(FAILS, f"{part.path} does not parse: {error}"))
    if sys.version_info < (3, 11):
        return [*found, Finding(NOTE, "pkb.toml is read by Python 3.11 or newer")]
    from ..messages.manifest import BadManifestError, manifest_of

    try:
        manifest_of(parts)
    except BadManifestError as error:
        found += [Finding(REFUSED, f"pkb.toml: {fault}") for fault in error.faults]
    return found


def _import_findings(body: list[ast.stmt]) -> list[Finding]:
    """Note what a file imports when it is loaded that no host of the release has."""
    if sys.version_info < (3, 10):
        return []  # it does not know Python's own modules
    found = []
    for node in body:
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.append(node.module)
    known = importable() | sys.stdlib_module_names
    unknown = {name.partition(".")[0] for name in found} - known
    return [Finding(NOTE, _UNKNOWN.format(name)) for name in sorted(unknown)]


def _is_untouched(function: ast.FunctionDef) -> bool:
    """Return True if a function does nothing but raise NotImplementedError, as a skeleton does."""
    last = function.body[-1]
    rest = function.body[:-1]
    raised = last.exc if isinstance(last, ast.Raise) else None
    name = raised.func if isinstance(raised, ast.Call) else raised
    says_only = all(
        isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant) for each in rest
    )
    return says_only and isinstance(name, ast.Name) and name.id == "NotImplementedError"


def signature_findings(arguments: ast.arguments, expected: tuple[Parameter, ...]) -> list[Finding]:
    """Return what is wrong with the arguments of `solution`, which is called by position."""
    own = [*arguments.posonlyargs, *arguments.args]
    given = ", ".join(each.name for each in expected)
    found = []
    if len(own) < len(expected) and arguments.vararg is None:
        found.append(f"{ENTRY} takes {len(own)} arguments, and is given {len(expected)}: {given}")
    needed = own[: len(own) - len(arguments.defaults)]
    if len(needed) > len(expected):
        found.append(
            f"{ENTRY} needs {len(needed)} arguments, and is given {len(expected)}: {given}"
        )
    alone = zip(arguments.kwonlyargs, arguments.kw_defaults)
    found += [f"{ENTRY} needs {each.arg} by name" for each, default in alone if default is None]
    return [Finding(FAILS, text) for text in found]


def _setting_findings(known: _Known, wanted: WantedSetting) -> list[Finding]:
    problem, backend = known.problem, known.backend
    found = []
    if problem is not None:
        asked = (
            ("world_size", wanted.world_size, problem.world_sizes),
            ("size", wanted.size, problem.sizes),
            ("dtype", wanted.dtype, problem.dtypes),
        )
        found += [
            f"{name} {value} is none of {', '.join(map(str, allowed))}"
            for name, value, allowed in asked
            if value is not None and value not in allowed
        ]
    if backend is not None and known.device == "cpu" and backend not in CPU_BACKENDS:
        found.append(f"{backend} kernels are judged on GPUs")
    refused = [Finding(REFUSED, text) for text in found]
    return [*refused, *_not_scored(known, wanted)]


def _not_scored(known: _Known, wanted: WantedSetting) -> list[Finding]:
    """Note that a run will not be scored, for it has fewer ranks than its problem is ranked
    from."""
    problem, ranks = known.problem, _ranks(known, wanted)
    if problem is None or ranks >= problem.ranked_from:
        return []
    least = problem.ranked_from
    text = f"practice: not scored on {ranks} ranks, this problem is ranked from {least}"
    return [Finding(NOTE, f"{text}; say --device cuda --world-size {least}")]


def _ranks(known: _Known, wanted: WantedSetting) -> int:
    """Return the ranks that are asked for, else those that the site chooses."""
    if wanted.world_size or known.device == "cpu":
        return wanted.world_size or CPU_RANKS
    if wanted.placement == "shared" or known.problem is None:
        return SHARED_RANKS
    return known.problem.ranked_from


def _needs(
    source: str, known: _Known, wanted: WantedSetting
) -> tuple[list[str] | None, list[Finding]]:
    """Return in words what its hosts must have, derived as the site does it, and what speaks
    against it."""
    if known.backend is None:
        return None, []
    if sys.version_info < (3, 11):
        return None, [Finding(NOTE, "what its hosts need is told by Python 3.11 or newer")]
    from ..messages.job import Backend, Placement
    from ..messages.needs import BETWEEN_GPUS, beyond_processors, fixed_ranks, in_words, needs

    if known.device == "cpu":
        lacking = beyond_processors(source)
        return [], [Finding(FAILS, f"it needs {lacking}: say --device cuda")] if lacking else []
    backend, problem = Backend(known.backend), known.problem
    placement = Placement(wanted.placement or "full")
    fixed = fixed_ranks(source) if backend is Backend.PARALLELKITTENS else frozenset()
    found = needs(
        source,
        backend,
        world_size=wanted.world_size or (min(fixed) if len(fixed) == 1 else _ranks(known, wanted)),
        peer_access=problem is None or problem.peer_access,
        multicast=problem is not None and problem.multicast,
        placement=placement,
    )
    beyond = found & BETWEEN_GPUS if placement is Placement.SHARED else frozenset()
    names = ", ".join(sorted(each.label for each in beyond))
    shared = [Finding(NOTE, f"no host has it where ranks share a GPU: {names}")] if beyond else []
    return sorted(in_words(found, source)), shared
