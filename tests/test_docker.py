"""The container files, as far as they can be checked without an engine."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
DOCKER = ROOT / "docker"
DOCKERFILES = ("web.Dockerfile", "worker.Dockerfile")
# Read by the images of other projects.
FOREIGN_VARIABLES = {"POSTGRES_USER", "POSTGRES_DB", "POSTGRES_PASSWORD", "REDISCLI_AUTH"}


def _compose() -> dict[str, Any]:
    return dict(yaml.safe_load((DOCKER / "compose.yml").read_text()))


def _services() -> dict[str, Any]:
    return dict(_compose()["services"])


def _instructions(name: str, word: str) -> list[str]:
    """What follows `word` in a Dockerfile, continuation lines joined."""
    joined = (DOCKER / name).read_text().replace("\\\n", " ")
    return [line[len(word) :].strip() for line in joined.splitlines() if line.startswith(word)]


def _command(service: dict[str, Any]) -> str:
    command = service.get("command", "")
    return command if isinstance(command, str) else shlex.join(command)


@pytest.mark.parametrize("name", DOCKERFILES)
def test_every_copied_path_exists(name: str) -> None:
    copied = [path for line in _instructions(name, "COPY ") for path in line.split()[:-1]]
    assert copied
    assert not [path for path in copied if not (ROOT / path).exists()]


@pytest.mark.parametrize("name", DOCKERFILES)
def test_every_requirements_file_exists(name: str) -> None:
    files = re.findall(r"requirements/\S+\.txt", (DOCKER / name).read_text())
    assert files
    assert not [path for path in files if not (ROOT / path).is_file()]


@pytest.mark.parametrize("name", DOCKERFILES)
def test_an_image_copies_what_its_process_imports(name: str) -> None:
    module = "leaderboard.wsgi" if name.startswith("web") else "evaluator.worker"
    copied = {path for line in _instructions(name, "COPY ") for path in line.split()[:-1]}
    loaded = subprocess.run(
        [sys.executable, "-c", f"import sys, {module}; print(*sys.modules)"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    ours = {"problems", "evaluator", "leaderboard", "tooling", "benchmarks", "tests"}
    assert {name.partition(".")[0] for name in loaded.stdout.split()} & ours <= copied


def test_the_processes_that_images_start_exist() -> None:
    commands = [line for name in DOCKERFILES for line in _instructions(name, "CMD ")]
    assert any("leaderboard.wsgi:application" in line for line in commands)
    assert any("evaluator.worker" in line for line in commands)
    for module in ("leaderboard/wsgi.py", "evaluator/worker/__init__.py"):
        assert (ROOT / module).is_file()


def test_images_have_exact_versions_that_a_variable_replaces() -> None:
    texts = {path.name: path.read_text() for path in DOCKER.glob("*") if path.is_file()}
    named = re.findall(r"^ARG (\w+_IMAGE)=(\S+)$", "\n".join(texts.values()), re.M)
    named += re.findall(r"\$\{(\w+_IMAGE):-([^}]+)\}", texts["compose.yml"])
    assert len(dict(named)) == len(set(named)) == 4
    assert all(re.search(r":\d+\.\d+(\.\d+)?-", image) for _, image in named)
    froms = [line.split()[0] for name in DOCKERFILES for line in _instructions(name, "FROM ")]
    outside = [service["image"] for service in _services().values() if "image" in service]
    assert all(image.startswith("${") for image in [*froms, *outside])


def test_nothing_of_ours_runs_as_root_and_the_worker_has_no_privilege() -> None:
    for name in DOCKERFILES:
        stages = len(_instructions(name, "FROM "))
        assert _instructions(name, "USER ") == ["pkb"] * stages
    worker = _services()["worker"]
    assert worker["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in worker["security_opt"]
    assert not {"cap_add", "privileged", "user"} & set(worker)


def test_compose_builds_from_files_and_targets_that_exist() -> None:
    builds = [service["build"] for service in _services().values() if "build" in service]
    assert len(builds) >= 3
    for build in builds:
        dockerfile = DOCKER / build["context"] / build["dockerfile"]
        assert dockerfile.is_file()
        if "target" in build:
            assert re.search(rf"^FROM .* AS {build['target']}$", dockerfile.read_text(), re.M)


def test_compose_names_only_services_and_volumes_that_it_declares() -> None:
    services, volumes = _services(), set(_compose()["volumes"])
    for service in services.values():
        assert set(service.get("depends_on", {})) <= set(services)
        assert {mount.partition(":")[0] for mount in service.get("volumes", [])} <= volumes
        for other, wanted in service.get("depends_on", {}).items():
            if wanted["condition"] == "service_healthy":
                assert "healthcheck" in services[other]


def test_management_commands_in_compose_and_docs_exist() -> None:
    texts = [(DOCKER / "compose.yml").read_text(), (DOCKER / "README.md").read_text()]
    texts.append((ROOT / "docs" / "deploy.md").read_text())
    named = {word for text in texts for word in re.findall(r"manage\.py (\w+)", text)}
    code = "import django; django.setup()\nfrom django.core.management import get_commands\n"
    known = subprocess.run(
        [sys.executable, "-c", code + "print(*get_commands())"],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "leaderboard.settings"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert {"migrate", "sync_problems"} <= named <= set(known.stdout.split())


def test_every_variable_of_compose_stands_in_the_example_and_the_other_way_round() -> None:
    used = set(re.findall(r"(?<!\$)\$\{(\w+)", (DOCKER / "compose.yml").read_text()))
    example = (DOCKER / "env.example").read_text()
    assert used == set(re.findall(r"^(\w+)=", example, re.M))


def test_every_setting_in_compose_is_one_that_our_code_reads() -> None:
    code = "\n".join(
        path.read_text()
        for folder in ("leaderboard", "evaluator")
        for path in (ROOT / folder).rglob("*.py")
    )
    settings = {name for service in _services().values() for name in service.get("environment", {})}
    unknown = {name for name in settings - FOREIGN_VARIABLES if f'"{name}"' not in code}
    assert not unknown


def test_no_secret_has_a_value_in_the_tree() -> None:
    example = (DOCKER / "env.example").read_text()
    for name in ("SECRET_KEY", "POSTGRES_PASSWORD", "REDIS_PASSWORD", "PKB_WORKER_TOKEN"):
        assert re.search(rf"^{name}=$", example, re.M)
    for service in _services().values():
        for name, value in service.get("environment", {}).items():
            if re.search("SECRET|PASSWORD|TOKEN|AUTH", name):
                assert str(value).startswith("${"), name


def test_the_site_of_compose_cannot_be_started_in_debug_mode() -> None:
    assert _services()["web"]["environment"]["DEBUG"] == "0"
    assert "migrate" in _command(_services()["prepare"])
