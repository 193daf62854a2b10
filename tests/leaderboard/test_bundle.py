"""A bundle holds what it takes to repeat a run, always the same bytes, for those who may see it."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evaluator.messages.codec import decode
from evaluator.messages.report import Report, Verdict
from leaderboard.models import DataVersion, Run, Submission, Visibility
from leaderboard.read_model.run_lines import command_of
from leaderboard.run_pages import bundles
from leaderboard.run_pages.reproduce import citation, setting_in_words, tex
from tests.leaderboard import factory, gpu_report

pytestmark = pytest.mark.django_db
MARK = "<script>alert(1)</script>](javascript:x) `code`\n# heading\u202e"


@pytest.fixture
def run() -> Run:
    return gpu_report.make_gpu_run()


def unpacked(body: bytes) -> dict[str, str]:
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        assert archive.testzip() is None
        return {Path(i.filename).name: archive.read(i).decode() for i in archive.infolist()}


def test_a_bundle_holds_source_job_report_and_the_command(run: Run, client: Client) -> None:
    response = client.get(f"/runs/{run.id}/bundle.zip")
    assert response["Content-Type"] == "application/zip"
    name = f"pkb-run-{str(run.id)[:8]}.zip"
    assert response["Content-Disposition"] == f'attachment; filename="{name}"'
    files = unpacked(response.content)
    assert set(files) == {"README.md", "kernel.py", "job.json", "report.json", "compare.py"}
    job = json.loads(files["job.json"])
    assert hashlib.sha256(files["kernel.py"].encode()).hexdigest() == job["kernel_digest"]
    assert decode(Report, json.loads(files["report.json"])).timing is not None
    told = "python -m evaluator run allreduce kernel.py --world-size 4 --size standard"
    flags = "--dtype bfloat16 --profile hardened --device cuda --backend pytorch"
    assert f"{told} {flags}" in files["README.md"]
    assert "1.42× of the reference" in files["README.md"]
    page = client.get(f"/runs/{run.id}").content.decode()
    assert f"{told} {flags}" in page
    assert f"/runs/{run.id}/bundle.zip" in page


def test_the_command_is_one_that_the_evaluator_takes(run: Run) -> None:
    from evaluator.__main__ import _parser

    words = command_of(run).split()
    assert words[:3] == ["python", "-m", "evaluator"]
    read = _parser().parse_args(words[3:])
    assert (read.problem, read.world_size, read.size) == ("allreduce", 4, "standard")


def test_the_same_bytes_come_again_and_need_not_be_sent(run: Run, client: Client) -> None:
    address = f"/kernels/{run.kernel.source_id}/bundle.zip"
    first, again = client.get(address), client.get(address)
    assert first.content == again.content
    packed = client.get(address, headers={"Accept-Encoding": "gzip"})
    assert gzip.decompress(packed.content) == first.content
    with CaptureQueriesContext(connection) as queries:
        kept = client.get(address, headers={"If-None-Match": first["ETag"]})
    assert kept.status_code == 304
    assert len(queries) == 1


def test_a_kernel_without_a_verdict_has_a_bundle_without_a_report(client: Client) -> None:
    run = factory.make_run(factory.make_kernel(factory.make_submission(), factory.make_problem()))
    files = unpacked(client.get(f"/kernels/{run.kernel.source_id}/bundle.zip").content)
    assert set(files) == {"README.md", "kernel.py", "job.json", "compare.py"}
    assert "had not been judged" in files["README.md"]


def test_a_huge_report_goes_without_its_timelines(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundles, "MOST_REPORT_BYTES", 1000)
    files = unpacked(bundles.bundle(run, "x = 1\n", run.report))
    assert json.loads(files["report.json"])["timelines"] == []


@pytest.mark.parametrize(
    ("viewer", "status"), [(None, 404), ("other", 404), ("owner", 200), ("staff", 200)]
)
def test_a_private_bundle_is_for_its_owner_and_staff(
    viewer: str | None, status: int, client: Client
) -> None:
    submission = factory.make_submission(visibility=Visibility.PRIVATE)
    run = factory.make_judged(submission, factory.make_problem())
    if viewer:
        make = factory.make_staff if viewer == "staff" else factory.make_user
        client.force_login(make(viewer))
    for address in (f"/runs/{run.id}", f"/kernels/{run.kernel.source_id}"):
        response = client.get(f"{address}/bundle.zip")
        assert response.status_code == status
        if status == 200:
            assert response["Cache-Control"] == "private, no-store"
            assert "ETag" not in response


def test_a_bundle_that_became_private_is_gone(run: Run, client: Client) -> None:
    address = f"/runs/{run.id}/bundle.zip"
    assert client.get(address).status_code == 200
    Submission.objects.update(visibility=Visibility.PRIVATE)
    DataVersion.objects.bump()
    assert client.get(address).status_code == 404


def test_names_cannot_write_the_readme_or_the_citation() -> None:
    submission = factory.make_submission(MARK[:80])
    run = factory.make_run(factory.make_kernel(submission, factory.make_problem()))
    text = bundles.readme(run, is_judged=False)
    assert "\n# heading" not in text
    assert "<script" not in text.replace(r"\<script", "")
    assert "\u202e" not in text
    made = citation(run.kernel, None, "https://example.org/kernels/x")
    assert made["bibtex"].count("{") == made["bibtex"].count("}")
    assert "\u202e" not in made["bibtex"]


@pytest.mark.parametrize("name", ["a}b{", r"\input{x}", "100% & #1_$~^", "%comment"])
def test_no_name_is_a_command_of_tex(name: str) -> None:
    made = tex(name).replace(r"\textbackslash{}", "").replace(r"\textasciitilde{}", "")
    made = made.replace(r"\textasciicircum{}", "")
    for character in r"&%$#_{}":
        made = made.replace(f"\\{character}", "")
    assert not set(made) & set(r"\&%$#_{}~^")


def test_a_citation_names_the_kernel_by_its_hash(run: Run, client: Client) -> None:
    digest = run.kernel.source_id
    page = client.get(f"/kernels/{digest}").content.decode()
    assert f"@misc{{pkb-kernel-{digest[:12]}" in page
    assert f"/kernels/{digest}}}" in page


def test_what_is_cited_and_repeated_says_which_judge_measured_it(run: Run, client: Client) -> None:
    setting = f"standard, bfloat16, hardened inputs, judge {run.judge_version}"
    page = client.get(f"/kernels/{run.kernel.source_id}").content.decode()
    cited = page.partition('id="cite"')[2]
    assert cited.count(f"{setting}; SHA-256 {run.kernel.source_id}") == 2
    assert f"{setting}:" in page.partition('id="reproduce"')[2]
    assert f"{setting}." in bundles.readme(run, is_judged=True)
    run.judge_version = ""
    assert setting_in_words(run).endswith("hardened inputs")


@pytest.mark.parametrize(
    ("changes", "status", "says"),
    [
        ({}, 0, "The same result"),
        ({"speedup": 2.9}, 1, "Another result"),
        ({"verdict": Verdict.OUTPUT_MISMATCH}, 1, "Another result"),
    ],
)
def test_the_script_compares_with_another_report(
    changes: dict[str, object], status: int, says: str, run: Run, tmp_path: Path
) -> None:
    body = bundles.bundle(run, run.kernel.source.text, run.report)
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        archive.extractall(tmp_path)
    report = dict(run.report or {})
    if "speedup" in changes:
        bounds = {"speedup": 2.9, "speedup_low": 2.8, "speedup_high": 3.0}
        report["timing"] = {**report["timing"], **bounds}
    if "verdict" in changes:
        report |= {"verdict": "output_mismatch", "timing": None}
    new = tmp_path / "new.json"
    new.write_text(json.dumps(report))
    script = next(tmp_path.glob("*/compare.py"))
    done = subprocess.run(
        [sys.executable, "-I", str(script), str(new)], capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stdout + done.stderr
    assert says in done.stdout


def test_the_script_refuses_another_kernel(run: Run, tmp_path: Path) -> None:
    body = bundles.bundle(run, "changed = True\n", run.report)
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        archive.extractall(tmp_path)
    script = next(tmp_path.glob("*/compare.py"))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "is not the kernel" in done.stdout
