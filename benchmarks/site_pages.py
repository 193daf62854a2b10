"""How fast the site answers with a million runs:

    python benchmarks/site_pages.py <folder> [--models 200 --attempts 12] [--out results.json]

Makes the database in the folder (with DATABASE_URL in that database), which a second run finds
again. Pages are asked for in this process through the whole WSGI application: *cold* with no page
cached before each request, *first* with what earlier pages drew forgotten too, *kept* from the
cache, *304* with the ETag. Then gunicorn with two workers answers `wrk`. Times are of the wall
clock; say what else the machine did.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import re
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
UNWANTED = ("torch", "pandas", "numpy", "plotly")
PATIENCE_S, LEAST_REPEATS = 15.0, 9
# Workers with one request at a time, and as docs/deploy.md starts them.
KINDS = {"plain": (), "as deployed": ("--worker-class", "gthread", "--threads", "8")}
WRK = ("wrk", "-t1", "-c8", "-d5s", "-H", "Accept-Encoding: gzip")
# One row of the table: what a page is called, its address, and what it took.
Page = dict[str, Any]
Url = tuple[str, str]


def prepare(folder: Path) -> None:
    """Settings of a public site whose state lies in the folder."""
    os.environ |= {
        "PKB_STATE_DIR": str(folder.resolve()),
        "DEBUG": "0",
        "SECRET_KEY": "0123456789abcdef" * 4,
        "ALLOWED_HOSTS": "localhost,127.0.0.1",
        "DJANGO_SETTINGS_MODULE": "leaderboard.settings",
        "LOG_LEVEL": "ERROR",
        "ACCESS_LOG": os.devnull,
    }
    import django
    from django.core.management import call_command

    django.setup()
    if not (folder / "static" / "staticfiles.json").exists():
        call_command("collectstatic", verbosity=0, interactive=False)


def addresses() -> list[Url]:
    """Every page of data that this version of the site has."""
    from django.urls import NoReverseMatch, reverse

    from leaderboard.models import Problem, Run

    some = Run.objects.filter(verdict="ok").select_related("kernel__submission__model")
    run = some.defer("report_packed").order_by("pk")[0]
    kernel, number = run.kernel, run.kernel.problem_id
    slug = Problem.objects.values_list("slug", flat=True).get(pk=number)
    wanted: list[tuple[str, list[Any], str]] = [
        ("board", [], ""),
        ("board", [], "?p=1.5"),
        ("board", [], "?backend=triton"),
        ("board-json", [], ""),
        ("matrix", [], ""),
        ("categories", [], ""),
        ("category", ["tensor_parallel"], ""),
        ("problems", [], ""),
        ("problem", [number, slug], ""),
        ("kernel", [kernel.source_id], ""),
        ("run", [run.pk], ""),
        ("model", [kernel.submission.model.slug], ""),
        ("submission", [kernel.submission_id], ""),
        ("compare", [], ""),
        ("hardware", [run.hardware_id], ""),
        ("search", [], "?q=model"),
        ("feed", [], ""),
    ]
    found = []
    for name, args, query in wanted:
        with contextlib.suppress(NoReverseMatch):
            found.append((name + query, reverse(name, args=args) + query))
    return found


def ask(address: str, etag: str = "") -> tuple[int, dict[str, str], bytes]:
    """Through every middleware, as a server asks."""
    from django.test import RequestFactory

    from leaderboard.wsgi import application

    serve: Any = application
    headers = {"Accept-Encoding": "gzip"} | ({"If-None-Match": etag} if etag else {})
    environ = RequestFactory(SERVER_NAME="localhost").get(address, headers=headers).environ
    told: dict[str, Any] = {}

    def start(status: str, fields: list[tuple[str, str]], *_: object) -> None:
        told.update(status=int(status[:3]), fields=dict(fields))

    response = serve(environ, start)
    body = b"".join(response)
    if hasattr(response, "close"):
        response.close()
    return told["status"], told["fields"], body


def forget() -> None:
    """Empty the cache of finished answers."""
    from leaderboard.delivery.cached_answers import CACHED

    CACHED.clear()


def forget_all() -> None:
    """Empty the caches with a bound too: what was drawn, linked and counted for earlier pages."""
    from leaderboard.read_model import boards

    forget()
    boards._MEMOISED.clear()
    for known in _memoised():
        known.cache_clear()


def _memoised() -> list[Any]:
    """The caches with a bound that functions of the site have."""
    ours = [module for name, module in sys.modules.items() if name.startswith("leaderboard")]
    found = [value for module in ours for value in list(vars(module).values())]
    kept = [one for one in found if type(one) is functools._lru_cache_wrapper]
    return [one for one in kept if one.cache_parameters()["maxsize"]]


def times_ms(
    work: Callable[[], object],
    repeats: int,
    before: Callable[[], object],
    clock: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """Sorted; of fewer repeats where they take longer than PATIENCE_S together."""
    found: list[float] = []
    until = time.monotonic() + PATIENCE_S
    while len(found) < repeats and (len(found) < LEAST_REPEATS or time.monotonic() < until):
        before()
        began = clock()
        work()
        found.append((clock() - began) * 1e3)
    return sorted(found)


def measure(name: str, address: str, repeats: int) -> Page:
    """Time a page. `queries` leaves out the one for the data version, which every request makes.
    `cpu_ms` is this process's time on a processor, which others' load lengthens less."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    ask(address)
    forget()
    with CaptureQueriesContext(connection) as queries:
        status, fields, body = ask(address)
        asked = sum("dataversion" not in query["sql"] for query in queries)
    etag = fields.get("ETag", "")
    cold = times_ms(lambda: ask(address), repeats, forget)
    others = {
        "first_ms": times_ms(lambda: ask(address), repeats // 3, forget_all),
        "cpu_ms": times_ms(lambda: ask(address), repeats // 3, forget, time.process_time),
        "kept_ms": times_ms(lambda: ask(address), repeats * 5, lambda: None),
        "not_modified_ms": times_ms(lambda: ask(address, etag), repeats * 5, lambda: None),
    }
    return {
        **{"name": name, "address": address, "status": status},
        **{"cold_ms": statistics.median(cold), "cold_p95_ms": cold[int(len(cold) * 0.95)]},
        **{key: statistics.median(found) for key, found in others.items()},
        **{"queries": asked, "gzip_kb": len(body) / 1024},
    }


def table(pages: list[Page]) -> str:
    lines = [
        "| page | cold, ms | p95 | first | CPU | kept | 304 | queries | kB gzip |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    cells = "| `{name}` | {cold_ms:.1f} | {cold_p95_ms:.1f} | {first_ms:.1f} | {cpu_ms:.1f} "
    cells += "| {kept_ms:.2f} | {not_modified_ms:.2f} | {queries} | {gzip_kb:.1f} |"
    lines += [
        cells.format(**page) + ("" if page["status"] == 200 else f" status {page['status']}")
        for page in pages
    ]
    return "\n".join(lines)


@contextlib.contextmanager
def gunicorn(*options: str) -> Iterator[tuple[str, int]]:
    """Start it with two workers; yield its address and process id."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{probe.getsockname()[1]}"
    program = str(Path(sys.executable).parent / "gunicorn")
    command = [program, "leaderboard.wsgi:application", "--bind", where, "--workers", "2"]
    command += options
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as server:
        time.sleep(4)
        try:
            yield f"http://{where}", server.pid
        finally:
            server.terminate()


def load(address: str) -> dict[str, Any]:
    """Count requests a second for a page from the cache; weigh a worker afterwards."""
    if shutil.which("wrk") is None:
        return {"requests": "wrk is not installed"}
    return {kind: _load(address, options) for kind, options in KINDS.items()}


def _load(address: str, options: Sequence[str]) -> dict[str, Any]:
    with gunicorn(*options) as (site, pid):
        with urllib.request.urlopen(site + address) as answer:
            etag = answer.headers["ETag"]
        rates = {
            "whole": _rate(site + address),
            "304": _rate(site + address, f"If-None-Match: {etag}"),
        }
        workers = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        weights = [_rss_mb(worker) for worker in workers]
    return {"requests/s": rates, "worker RSS without mapped files, MB": max(weights)}


def _rate(url: str, header: str = "X-Nothing: 1") -> float:
    done = subprocess.run([*WRK, "-H", header, url], capture_output=True, text=True, check=True)
    found = re.search(r"Requests/sec:\s+([\d.]+)", done.stdout)
    return float(found[1]) if found else 0.0


def _rss_mb(pid: str) -> float:
    found = re.search(r"RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    for name, usual in (("models", 200), ("problems", 87), ("attempts", 12), ("hardware", 5)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--repeats", type=int, default=31)
    parser.add_argument("--only", default="", help="pages whose name begins so, and nothing else")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    prepare(asked.folder)
    from site_data import Amount, fill, updating

    from leaderboard.models import Run

    names = ("models", "problems", "attempts", "hardware")
    amount = Amount(**{name: getattr(asked, name) for name in names})
    found: dict[str, Any] = {"filling, s": fill(amount), "runs": Run.objects.count()}
    wanted = [url for url in addresses() if url[0].startswith(asked.only)]
    pages = [measure(*url, asked.repeats) for url in wanted]
    print(table(pages), flush=True)
    found["pages"] = pages
    found["loaded"] = [name for name in UNWANTED if name in sys.modules]
    found["this process, MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if not asked.only:
        found["update"] = updating(asked.repeats, lambda: ask("/"))
        found["load"] = load(pages[0]["address"])
    print(json.dumps({k: v for k, v in found.items() if k != "pages"}, indent=1))
    if asked.out:
        asked.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
