"""Docs that lie fail the build: whatever a reader may type or meet occurs in docs/, and exists."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import get_commands
from django.urls import URLPattern, URLResolver, get_resolver

from evaluator.messages.job import Backend, Job, Profile
from evaluator.messages.report import Isolation, Phase, Verdict
from problems.spec import Problem

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "docker" / "README.md"])
ALL_TEXT = "\n".join(page.read_text() for page in PAGES)
# Of each the page that explains it, and a flag that it is sure to have.
PROGRAMS = {
    "evaluator.__main__": ("command-line.md", "--pretty"),
    "evaluator.generate.__main__": ("command-line.md", "--model"),
    "problems.__main__": ("command-line.md", "--seeds"),
    "evaluator.client.main": ("client.md", "--wait"),
}
SETTING_READERS = {"text", "flag", "number", "words"}
# Set by our own processes for their children.
NOT_FOR_PEOPLE = {
    *("DJANGO_SETTINGS_MODULE", "PKB_MEASURED_ISOLATION"),
    *("RANK", "WORLD_SIZE", "TORCH_CUDA_ARCH_LIST"),
}
# They try whether a submission could read there.
MAY_NAME_PATHS = (
    ROOT / "evaluator" / "probes" / "isolation.py",
    ROOT / "tests" / "evaluator" / "misbehaving",
)
# Spelled in pieces, because this file is searched too.
MACHINE_PATHS = re.compile("|".join(["/" + "work/", "/" + "root/", "/home/" + r"\w+/"]))


def _documented(word: str, where: str | None = None) -> bool:
    text = ALL_TEXT if where is None else (ROOT / "docs" / where).read_text()
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) is not None


def _tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).is_file()]


def _settings() -> set[str]:
    """Names given to the readers of the environment, on the site and in the evaluator."""
    names = set()
    for path in [*ROOT.glob("leaderboard/**/*.py"), *ROOT.glob("evaluator/**/*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and node.args and isinstance(node.func, ast.Attribute):
                owner = ast.unparse(node.func.value)
                reads = owner == "env" and node.func.attr in SETTING_READERS
                names |= _literal(node.args[0]) if reads or owner == "os.environ" else set()
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
                names |= _literal(node.slice) if ast.unparse(node.value) == "os.environ" else set()
    return names - NOT_FOR_PEOPLE


def _help(program: str, said: pytest.CaptureFixture[str], *command: str) -> str:
    with pytest.raises(SystemExit) as ended:
        importlib.import_module(program).main([*command, "--help"])
    assert not ended.value.code
    return said.readouterr().out


def _literal(node: ast.expr) -> set[str]:
    return {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) else set()


def _routes(resolver: URLResolver, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Name and address of every page and API call, the admin's left out."""
    for pattern in resolver.url_patterns:
        address = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver) and pattern.app_name != "admin":
            yield from _routes(pattern, address)
        elif isinstance(pattern, URLPattern) and pattern.name:
            yield pattern.name, "/" + re.sub(r"<(?:\w+:)?(\w+)>", r"<\1>", address)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)\s#]+)(?:#[\w-]+)?\)", page.read_text())
    local = [target for target in targets if not target.startswith(("https://", "mailto:"))]
    assert not [target for target in local if not (page.parent / target).exists()]


@pytest.mark.parametrize("value", [*Verdict, *Isolation, *Phase, *Profile, *Backend])
def test_what_a_report_may_say_is_explained(value: str) -> None:
    assert _documented(str(value))


@pytest.mark.parametrize("name", sorted(_settings()))
def test_every_setting_is_listed(name: str) -> None:
    assert _documented(name)


def test_every_field_of_a_problem_is_explained() -> None:
    names = [field.name for field in dataclasses.fields(Problem)]
    assert not [name for name in names if not _documented(name, "problem-format.md")]


def test_every_field_of_a_job_is_explained() -> None:
    names = [field.name for field in dataclasses.fields(Job)]
    assert not [name for name in names if not _documented(name)]


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_command_line_flag_is_on_the_page_of_its_program(
    program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = re.search(r"\{([\w,]+)\}", _help(program, capsys))
    assert commands, f"{program} --help lists no commands"
    helps = [_help(program, capsys, command) for command in commands[1].split(",")]
    flags = {flag for said in helps for flag in re.findall(r"--[a-z][\w-]*", said)}
    page, own = PROGRAMS[program]
    assert own in flags
    assert not [flag for flag in flags - {"--help"} if not _documented(flag, page)]


def test_every_management_command_of_ours_is_explained() -> None:
    ours = {name for name, app in get_commands().items() if app == "leaderboard"}
    assert "sync_problems" in ours
    assert not [name for name in ours if not _documented(name, "command-line.md")]


def test_every_address_is_listed() -> None:
    routes = list(_routes(get_resolver()))
    twins = {name for name, _ in routes if name.endswith(("-json", "-csv"))}
    for name, address in routes:
        if name not in twins:
            page = "api.md" if address.startswith("/api/") else "pages.md"
            assert f"{address}`" in (ROOT / "docs" / page).read_text(), f"{address} not in {page}"


def test_every_make_target_is_listed_and_every_listed_one_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    found = re.search(r"^COMMANDS := (.*)$", makefile, re.M)
    assert found
    targets = set(found[1].split())
    assert targets == set(re.findall(r"'make ([\w-]+) ", makefile))
    assert not [name for name in targets if not re.search(rf"make {name}\b", ALL_TEXT)]
    assert set(re.findall(r"(?:`|^ {4})make (\w+)", ALL_TEXT, re.M)) <= targets


def test_modules_and_files_that_docs_name_exist() -> None:
    modules = set(re.findall(r"python -m ([a-z]\w*(?:\.\w+)*)", ALL_TEXT)) - {"venv", "pytest"}
    for module in modules:
        path = ROOT / module.replace(".", "/")
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), module
    folders = "problems|evaluator|leaderboard|tests|tooling|docs|docker|fixtures|requirements"
    named = set(re.findall(rf"`((?:{folders})/[\w./-]+)`", ALL_TEXT))
    assert not [name for name in named if not (ROOT / name).exists()]


def _rooms() -> list[Path]:
    """The folders of Python modules in the judge and on the site."""
    inits = [path for name in ("evaluator", "leaderboard") for path in (ROOT / name).rglob("*.py")]
    return sorted({path.parent for path in inits})


def test_the_tour_names_every_room() -> None:
    tour = (ROOT / "docs" / "architecture.md").read_text()
    under = [room for room in _rooms() if len(room.relative_to(ROOT).parts) == 2]
    assert len(under) > 30
    assert not [room for room in under if f"`{room.relative_to(ROOT)}/`" not in tour]


def test_the_tour_names_nothing_that_is_gone() -> None:
    tour = (ROOT / "docs" / "architecture.md").read_text()
    tops = "|".join(path.name for path in ROOT.iterdir() if path.is_dir() and path.name[0] != ".")
    named = set(re.findall(rf"\b((?:{tops})/[\w./-]*\w)", tour))
    assert len(named) > 50
    assert not [name for name in named if not _exists(name)]


def _exists(name: str) -> bool:
    return any((folder / name).exists() for folder in (ROOT, ROOT / "leaderboard"))


@pytest.mark.parametrize("room", _rooms(), ids=lambda room: str(room.relative_to(ROOT)))
def test_a_room_says_what_it_holds_and_who_may_import_it(room: Path) -> None:
    said = ast.get_docstring(ast.parse((room / "__init__.py").read_text())) or ""
    assert 1 <= len(re.findall(r"\.(?=\s|$)", said)) <= 2
    assert re.search(r"\bImported\s+by\b", said)


def test_nothing_names_a_path_of_somebodys_machine() -> None:
    texts = {".py", ".md", ".txt", ".toml", ".yml", ".json", ".html", ".css", ".example", ""}
    own = [path for path in _tracked() if path.suffix in texts and "vendor" not in path.parts]
    found = [path for path in own if MACHINE_PATHS.search(path.read_text(errors="replace"))]
    assert not [path for path in found if not any(map(path.is_relative_to, MAY_NAME_PATHS))]
