"""Lead from a fresh clone to a judged kernel on its page: `make up`."""

from __future__ import annotations

import shutil

from tooling import example, install, places, services
from tooling.console import step


def up() -> None:
    """Install, prepare, start, judge one kernel. A step that is done already does nothing."""
    install.virtual_environment(development=False)
    places.make_state()
    _sandbox()
    with step("database") as notes:
        services.manage("migrate", "--noinput")
        notes.append("migrated")
    with step("catalogue") as notes:
        services.manage("sync_problems")
        services.manage("import_published")
        services.manage("import_reports")
        notes.append("problems, published results and shipped reports loaded")
    with step("snapshot") as notes:
        notes.append(services.ensure_snapshot())
    if not services.is_debug():
        with step("static files") as notes:
            services.manage("collectstatic", "--noinput")
            notes.append("collected")
    with step("account") as notes:
        notes.append(services.ensure_owner())
    with step("site") as notes:
        site, how = services.start_site()
        notes.extend([site, how])
    with step("worker") as notes:
        notes.append(services.start_worker(site))
    with step("kernel") as notes:
        line, page = example.judge_example(
            site, services.token(site, "submit"), services.code_fingerprint()
        )
        notes.append(line)
    print(f"\n  leaderboard    {site}/")
    print(f"  this verdict   {page}")
    print(f"  logs           {places.logs()}")
    print(f"  tokens         {places.state() / 'secrets'}")
    print("  make down      stops both")


def _sandbox() -> None:
    with step("bubblewrap") as notes:
        if shutil.which("bwrap"):
            notes.append("present")
        elif install.debian_packages(["bubblewrap"]):
            notes.append("installed")
        else:
            notes.append("missing: kernels run without isolation and are never ranked")
            notes.append("apt-get install bubblewrap (as root) mends it")
