"""Run the blocks of docs/deploy.md on a site and two hosts of their own, for `make test-deploy`."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from tooling import install, machines, places
from tooling.console import Failure
from tooling.deploy_page import Block, blocks, named, packages
from tooling.machines import Machine

SITE = "leaderboard.example.org"
HOSTS = ("gpu-1", "gpu-2")
# What differs from the page. There are two workers for each host, without a GPU.
NAMES = {"REPOSITORY": "/shared/pkb", "QUEUE": "cpu", "GPU_GROUPS": '"0 1"'}
# There is no cgroup that a worker may write to.
CHANGED = {
    "PKB_GPUS=$gpus": "PKB_GPUS=",
    "PKB_MIN_ISOLATION=bwrap+cgroup+seccomp": "PKB_MIN_ISOLATION=bwrap",
}
PIP = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/shared/wheels", "PIP_ROOT_USER_ACTION": "ignore"}
REQUIREMENTS = ("web.txt", "evaluator.txt", "torch.txt")
CERTIFICATE = f"""
folder=/etc/letsencrypt/live/{SITE}
mkdir -p $folder
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={SITE} \
    -addext subjectAltName=DNS:{SITE} \
    -keyout $folder/privkey.pem -out $folder/fullchain.pem 2> /dev/null
cat $folder/fullchain.pem
"""


def test_deploy() -> None:
    """Run each block that the page does not mark; raises Failure at the first that fails."""
    install.virtual_environment(development=False)
    if lacks := machines.lacking():
        raise Failure(f"make test-deploy needs {', '.join(lacks)}: see Debian's mmdebstrap")
    found = blocks()
    began_s = time.monotonic()
    base, kept = machines.debian(packages(found)), machines.wheels(REQUIREMENTS)
    print(f"{time.monotonic() - began_s:7.1f} s  a Debian with the page's packages, and wheels")
    with tempfile.TemporaryDirectory(prefix="pkb-shared-") as folder:
        shared = Path(folder)
        shared.chmod(0o755)
        _copy_tree(shared / "pkb")
        shutil.copytree(kept, shared / "wheels", copy_function=os.link)
        with machines.network(("site", *HOSTS), base, shared) as systems:
            _run_all(found, systems)
    print(f"{time.monotonic() - began_s:7.1f} s  in all")


def _run_all(found: list[Block], systems: list[Machine]) -> None:
    site, *hosts = systems
    _prepared(systems)
    first_on_hosts = next(i for i, block in enumerate(found) if block.is_on_hosts)
    on_site = [block for block in found[:first_on_hosts] if not block.is_on_hosts]
    _run_chapters(site, on_site)
    for host in hosts:
        _bring_files(site, host)
        _run_chapters(host, [block for block in found if block.is_on_hosts])
    names = _names(on_site)
    for block in (block for block in found[first_on_hosts:] if not block.is_on_hosts):
        try:
            _run(site, block, names)
        except Failure:
            for host in hosts:
                print(host.run("tail -n 30 /var/log/pkb-units/*", {}).stdout)
            raise


def _prepared(systems: list[Machine]) -> None:
    """Give each system the site's name, our systemctl and a certificate that it trusts."""
    certificate = systems[0].run(CERTIFICATE, {}).stdout.encode()
    units = (places.ROOT / "tooling" / "units.py").read_bytes()
    for system in systems:
        hosts = f"127.0.0.1 localhost {system.name} {SITE}\n".encode()
        system.write("/etc/hosts", hosts, 0o644)
        system.write("/usr/local/bin/systemctl", units, 0o755)
        system.write("/usr/local/share/ca-certificates/site.crt", certificate, 0o644)
        system.run("update-ca-certificates", {})


def _bring_files(site: Machine, host: Machine) -> None:
    """Do what the page does by ssh: bring a host its settings and the certificate of Redis."""
    told = (site.root / f"etc/pkb/{host.name}.env").read_bytes()
    host.write("/etc/pkb/worker.env", told, 0o600)
    host.write("/etc/pkb/redis.crt", (site.root / "etc/pkb/redis.crt").read_bytes(), 0o644)


def _names(found: list[Block]) -> str:
    """Return the exports of blocks, as one script: each block runs in a bash of its own."""
    lines = [line for block in found for line in named(block.script, NAMES).splitlines()]
    return "\n".join(line for line in lines if line.startswith("export "))


def _run_chapters(system: Machine, found: list[Block]) -> None:
    names = _names(found)
    for block in found:
        _run(system, block, names)


def _run(system: Machine, block: Block, names: str) -> None:
    where = f"{system.name:<6} {block.title}"
    if block.skipped:
        print(f"      skipped  {where}: {block.skipped}", flush=True)
        return
    began_s = time.monotonic()
    script = named(block.script, NAMES)
    for told, instead in CHANGED.items():
        script = script.replace(told, instead)
    done = system.run(f"{names}\n{script}", PIP)
    print(f"{time.monotonic() - began_s:7.1f} s  {where}", flush=True)
    if done.returncode:
        raise Failure(f"{where} failed:\n{done.stdout}")
    if block.title == "Try it":
        print(done.stdout)


def _copy_tree(target: Path) -> None:
    """Commit the tracked and new files of this tree into a repository that can be cloned."""
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard"],
        cwd=places.ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.splitlines()):
        if (places.ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(places.ROOT / name, target / name)
    author = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    for words in (["init", "-q"], ["add", "-A"], [*author, "commit", "-q", "-m", "The tree"]):
        subprocess.run(["git", *words], cwd=target, check=True)
