"""What can be checked of docs/deploy.md without running it: `make test-deploy` runs its blocks."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
from pathlib import Path

import pytest

from tooling import deploy_page, deploying, units

ROOT = Path(__file__).resolve().parent.parent
DOCKER = ROOT / "docker"
BLOCKS = deploy_page.blocks()
SCRIPTS = "\n".join(block.script for block in BLOCKS)
# Each with the reason on the page: nobody leaves out another without changing this list.
SKIPPED = {
    ("The site", "Certificate", "needs a public name"),
    ("The site", "Copy", "needs ssh; the test copies the same files"),
    ("A judging host", "Driver", "needs a GPU"),
    ("A judging host", "User namespaces", "needs Ubuntu 24.04"),
    ("A judging host", "Isolation", "needs systemd, which gives a worker its cgroup"),
}


def test_the_page_leads_to_the_smoke_test() -> None:
    assert len(BLOCKS) > 20
    assert BLOCKS[-1].script.startswith("pkb-manage smoke")
    assert SCRIPTS.count("```") == 0
    assert len(BLOCKS) == deploy_page.PAGE.read_text().count("```sh\n")


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"{block.chapter}: {block.title}")
def test_a_block_is_shell(block: deploy_page.Block) -> None:
    done = subprocess.run(
        ["bash", "-n"], input=block.script, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_what_the_test_leaves_out_is_this() -> None:
    skipped = [(b.chapter, b.title, b.skipped) for b in BLOCKS if b.skipped]
    assert sorted(skipped) == sorted(SKIPPED)


def test_what_the_test_changes_is_on_the_page() -> None:
    assert all(SCRIPTS.count(told) == 1 for told in deploying.CHANGED)
    exported = {name for block in BLOCKS for name in block.exports}
    assert set(deploying.NAMES) <= exported
    assert f"export SITE={deploying.SITE}" in SCRIPTS
    assert f'export HOSTS="{" ".join(deploying.HOSTS)}"' in SCRIPTS


def test_files_that_blocks_name_exist() -> None:
    named = set(re.findall(r"/srv/pkb/((?:docker|requirements)/[\w./@*-]+)", SCRIPTS))
    assert len(named) > 8
    assert not [name for name in named if not list(ROOT.glob(name))]


def test_settings_that_blocks_and_the_example_name_are_explained() -> None:
    example = (DOCKER / "site.env.example").read_text()
    named = set(re.findall(r"^([A-Z][A-Z_]+)=", f"{SCRIPTS}\n{example}", re.M))
    assert len(named) > 20
    named.discard("DJANGO_SUPERUSER_PASSWORD")  # Django's own
    told = (ROOT / "docs" / "settings.md").read_text()
    assert not [name for name in named if f"`{name}`" not in told]


def test_the_example_has_no_secret_and_blocks_fill_each() -> None:
    example = (DOCKER / "site.env.example").read_text()
    for name in ("SECRET_KEY", "METRICS_TOKEN", "DATABASE_URL", "CELERY_BROKER_URL"):
        assert re.search(rf"^{name}=$", example, re.M)
        assert f"^{name}=" in SCRIPTS


def test_management_commands_that_blocks_run_exist() -> None:
    ours = {path.stem for path in (ROOT / "leaderboard/management/commands").glob("*.py")}
    django = {"migrate", "collectstatic", "check", "createsuperuser"}
    named = set(re.findall(r"(?<!/)pkb-manage (\w+)", SCRIPTS))
    assert {"smoke", "create_token"} <= named <= ours | django


def test_a_unit_is_read_as_systemd_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "UNITS", DOCKER / "systemd")
    worker = units.read("pkb-worker@2")
    assert worker["User"] == ["pkb-worker-2"]
    assert worker["EnvironmentFile"] == ["/etc/pkb/worker.env", "/etc/pkb/worker-2.env"]
    assert " -n 2@" in worker["ExecStart"][-1]
    assert "date -u +%Y%m%dT" in units.read("pkb-backup")["ExecStart"][-1]


def test_the_owner_of_the_tables_migrates_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "site.env").write_text("DATABASE_URL=postgresql://pkb@localhost/pkb\n")
    (tmp_path / "owner.env").write_text("DATABASE_URL=postgresql://pkb_owner@localhost/pkb\n")
    monkeypatch.setenv("PKB_SITE_ENV", str(tmp_path / "site.env"))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    settings = runpy.run_path(str(DOCKER / "pkb-manage"))["settings"]
    by_command = {name: settings(name)["DATABASE_URL"] for name in ("migrate", "restore", "smoke")}
    owner, site = (f"postgresql://{name}@localhost/pkb" for name in ("pkb_owner", "pkb"))
    assert by_command == {"migrate": owner, "restore": owner, "smoke": site}
