"""The kernel page and the run page: from the verdict down to its evidence, for who may see it."""

from __future__ import annotations

import re
from dataclasses import replace

import plotly.graph_objects as go
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evaluator.messages.profile import EventKind
from evaluator.messages.report import RankLog, Verdict
from leaderboard.models import Kernel, Run, Source, Submission, Visibility
from leaderboard.run_pages.lineage import lineage, previous
from tests.leaderboard import factory, gpu_report

pytestmark = pytest.mark.django_db
HOSTILE = "<img src=x onerror=alert(1)>\u202e\u2066"
SHOWN = "&lt;img src=x onerror=alert(1)&gt;[U+202E][U+2066]"
STEP = "import torch\n\n\ndef solution(x):\n    return x + {}\n"


def step(run: Run, number: int, text: str) -> Kernel:
    return Kernel.objects.create(
        submission=run.kernel.submission,
        problem=run.kernel.problem,
        attempt=1,
        step=number,
        backend="cuda",
        source=Source.objects.keep(text)[0],
    )


@pytest.fixture
def run() -> Run:
    """The first of three steps."""
    return gpu_report.make_gpu_run(source=STEP.format(1))


@pytest.fixture
def steps(run: Run) -> list[Kernel]:
    second, third = step(run, 2, STEP.format(2)), step(run, 3, STEP.format(3))
    failed = factory.make_run(second, world_size=4, size="standard", dtype="bfloat16")
    factory.finish(failed, factory.make_report(failed, Verdict.OUTPUT_MISMATCH))
    return [run.kernel, second, third]


def page_of(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200, response.content.decode()[:500]
    return response.content.decode()


def text_of(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


@pytest.mark.parametrize("where", ["kernel", "run"])
def test_a_page_shows_all_that_a_report_of_gpus_holds(where: str, run: Run, client: Client) -> None:
    address = f"/kernels/{run.kernel.source_id}" if where == "kernel" else f"/runs/{run.id}"
    html = page_of(client, address)
    text = text_of(html)
    assert "Links bound 33.60 47.7" in text
    assert html.count('<svg class="bar" aria-hidden="true"><rect width="') >= 4  # in a colour
    assert "Utilisation 47.7 %" in text
    assert "61.0 % of the communication ran beside computing" in text
    assert "sw power cap" in text
    assert "NCCL seen in the trace" in text
    address = f"/kernels/{run.kernel.source_id}" + (f"?run={run.id}" if where == "run" else "")
    assert f'<a href="{address}#L-6">line 6: dist.all_reduce(</a>' in html
    assert "NCCL_NVLS_ENABLE" in text
    assert "6 of 6 right on 4 ranks, largest error 0.600 of the tolerance" in text
    anchors = re.findall(r'<li><a href="#([\w-]+)">', html)
    assert {"speed", "trials", "bursts", "ranks", "timeline", "mechanisms"} <= set(anchors)
    for anchor in anchors:
        assert html.count(f'id="{anchor}"') == 1, anchor


def test_an_interval_that_holds_one_says_so(run: Run, client: Client) -> None:
    assert "not distinguishable from 1.0×" not in page_of(client, f"/runs/{run.id}")
    kernel = factory.make_kernel(factory.make_submission("Even"), run.kernel.problem)
    even = factory.make_run(kernel)
    factory.finish(even, factory.make_report(even, speedup=1.01))
    assert "not distinguishable from 1.0×" in page_of(client, f"/runs/{even.id}")


def test_the_page_asks_the_database_little(run: Run, steps: list[Kernel], client: Client) -> None:
    for _ in range(5):
        factory.make_run(run.kernel)
    for query, most in (("", 4), ("?diff=reference", 5), ("?diff=" + steps[2].source_id, 5)):
        with CaptureQueriesContext(connection) as queries:
            page_of(client, f"/kernels/{run.kernel.source_id}{query}")
        own = [q["sql"] for q in queries if "dataversion" not in q["sql"]]
        assert len(own) <= most, own
        assert sum("report_packed" in sql for sql in own) == 1
        assert sum('"payload"' in sql for sql in own) == (query == "?diff=reference")


def test_a_cancelled_run_does_not_hide_the_evidence_of_an_older_one(
    run: Run, client: Client
) -> None:
    again = factory.make_run(run.kernel)
    factory.finish(again, factory.make_report(again, Verdict.HOST_UNSUPPORTED, trials=()))
    assert "1.42×" in page_of(client, f"/kernels/{run.kernel.source_id}")


@pytest.mark.parametrize("name", ["burst-histogram", "timeline", "bursts", "margins"])
def test_a_figure_of_a_run_is_a_valid_one_with_a_table(name: str, run: Run, client: Client) -> None:
    spec = client.get(f"/figures/{name}.json?run={run.id}").json()
    assert go.Figure(spec).data
    table = client.get(f"/figures/{name}.csv?run={run.id}").content.decode().splitlines()
    assert len(table) > 4
    assert f"/figures/{name}.csv?run={run.id}" in page_of(client, f"/runs/{run.id}")


def test_a_timeline_is_bounded_and_keeps_the_longest(run: Run, client: Client) -> None:
    waiting = factory.make_run(step(run, 9, STEP.format(9)), world_size=4)
    long = tuple(gpu_report.make_timeline(rank, calls=300) for rank in range(4))
    factory.finish(waiting, gpu_report.make_gpu_report(waiting, timelines=long))
    spec = client.get(f"/figures/timeline.json?run={waiting.id}").json()
    drawn = sum(len(trace["x"]) for trace in spec["data"])
    assert drawn == 2000
    kinds = {"compute", "communication", "waiting for another rank"}
    assert {trace["name"] for trace in spec["data"]} == kinds
    told = "the longest 2,000 of 6,000 events"
    assert told in page_of(client, f"/runs/{waiting.id}")
    html = page_of(client, f"/figures/timeline?run={waiting.id}")
    assert told in html
    assert sum(html.count(f"<bdi>{kind}</bdi>") for kind in kinds) == 2000


def test_a_run_without_timing_has_no_timing_figures(client: Client) -> None:
    failed = factory.make_judged(
        factory.make_submission(), factory.make_problem(), Verdict.OUTPUT_MISMATCH
    )
    for name in ("burst-histogram", "timeline", "bursts"):
        assert client.get(f"/figures/{name}.json?run={failed.id}").status_code == 404
    text = text_of(page_of(client, f"/runs/{failed.id}"))
    assert "Outputs that failed" in text
    assert "37 /2,048" in text
    assert "What the hardware" not in text


@pytest.mark.parametrize("wanted", ["reference", "previous", "digest"])
def test_a_kernel_is_compared_with_what_the_address_says(
    wanted: str, steps: list[Kernel], client: Client
) -> None:
    _, second, third = steps
    query = third.source_id if wanted == "digest" else wanted
    address = f"/kernels/{second.source_id}"
    html = page_of(client, f"{address}?diff={query}")
    old = {"reference": "def reference(tensor):", "previous": "x + 1", "digest": "x + 3"}[wanted]
    rows = [text_of(row) for row in re.findall(r"<tr class=\"removed\">.*?</tr>", html)]
    assert any(old in row and "−" in row for row in rows), rows
    added = [text_of(row) for row in re.findall(r"<tr class=\"added\">.*?</tr>", html)]
    assert any("x + 2" in row and " + " in row for row in added)
    diff = client.get(f"{address}.json?diff={query}").json()["diff"]
    assert diff["added"] == len(added)
    assert f'href="{address}#source"' in html
    assert 'id="diff"' not in page_of(client, address)


def test_what_cannot_be_compared_is_a_clear_400(steps: list[Kernel], client: Client) -> None:
    first = f"/kernels/{steps[0].source_id}"
    for wanted in ("previous", "x", "0" * 64, "A" * 64):
        response = client.get(f"{first}?diff={wanted}")
        assert response.status_code == 400, wanted
        assert "or use one of: reference, the SHA-256" in response.content.decode()


def test_nobody_reads_a_private_source_by_comparing(run: Run) -> None:
    hidden = factory.make_submission("Secret", visibility=Visibility.PRIVATE, owner="owner")
    secret = factory.make_kernel(hidden, run.kernel.problem, source="secret = 1\n")
    address = f"/kernels/{run.kernel.source_id}?diff="
    stranger, owner, other = Client(), Client(), Client()
    owner.force_login(factory.make_user("owner"))
    other.force_login(factory.make_user("other"))
    seen = owner.get(address + secret.source_id)
    assert "secret = 1" in seen.content.decode()
    own = factory.make_kernel(hidden, run.kernel.problem, source="secret = 2\n", attempt=2)
    alone = owner.get(f"/kernels/{own.source_id}").content.decode()
    assert "from it to this" in alone
    assert "side by side" not in alone
    assert seen["Cache-Control"] == "private, no-store"
    for reader in (stranger, other):
        there, absent = reader.get(address + secret.source_id), reader.get(address + "0" * 64)
        assert there.status_code == absent.status_code == 400
        masked = there.content.decode().replace(secret.source_id, "0" * 64)
        assert masked == absent.content.decode()
        assert there.headers == absent.headers


def test_a_private_kernel_answers_like_one_that_is_not_there() -> None:
    hidden = factory.make_submission("Secret", visibility=Visibility.PRIVATE)
    secret = factory.make_kernel(hidden, factory.make_problem(), source="secret = 1\n")
    there, absent = (Client().get(f"/kernels/{d}") for d in (secret.source_id, "0" * 64))
    assert there.status_code == absent.status_code == 404
    assert there.headers == absent.headers


def test_the_attempts_beside_a_kernel_are_listed_with_their_results(
    steps: list[Kernel], client: Client
) -> None:
    html = page_of(client, f"/kernels/{steps[1].source_id}")
    table = html[html.index('id="attempts"') : html.index('id="runs"')]
    rows = [text_of(row) for row in re.findall(r"<tr.*?</tr>", table, re.DOTALL)][1:]
    assert [row.split(" step ")[1][0] for row in rows] == ["1", "2", "3"]
    assert "1.42" in rows[0]
    assert "from it to this · side by side" in rows[0]
    beside = f"/compare?kernels={steps[0].source_id},{steps[1].source_id}"
    assert f'href="{beside}&amp;run={steps[1].runs.get().pk}"' in table
    assert client.get(beside).status_code == 200
    assert "output mismatch" in rows[1]
    assert "this kernel" in rows[1]
    listed = client.get(f"/kernels/{steps[1].source_id}.json").json()["attempts"]
    assert [entry["is_here"] for entry in listed] == [False, True, False]


def test_before_the_first_step_of_an_attempt_comes_the_last_of_the_one_before(
    steps: list[Kernel],
) -> None:
    second_attempt = Kernel.objects.create(
        submission=steps[0].submission,
        problem=steps[0].problem,
        attempt=2,
        step=1,
        backend="cuda",
        source=Source.objects.keep("x = 1\n")[0],
    )
    before = previous(lineage(second_attempt, {}))
    assert before is not None
    assert (before.attempt, before.step) == (1, 3)
    assert previous(lineage(steps[0], {})) is None


def test_a_flag_is_told_at_its_lines(run: Run, client: Client) -> None:
    again = factory.make_run(run.kernel, world_size=run.world_size)
    report = gpu_report.make_gpu_report(again, flag_lines={"static:threads": (2,)})
    factory.finish(again, report)
    html = page_of(client, f"/kernels/{run.kernel.source_id}?run={again.pk}")
    line = next(line for line in html.splitlines() if 'id="L-2"' in line)
    assert "<mark>◂ threads</mark>" in line


def test_lines_that_the_evidence_names_are_marked(run: Run, client: Client) -> None:
    html = page_of(client, f"/kernels/{run.kernel.source_id}")
    assert "<mark>" not in html  # line 6 of a source with 5 lines
    kernel = step(run, 5, STEP.format(5))
    failed = factory.make_run(kernel)
    log = 'Traceback (most recent call last):\n  File "/tmp/rank0/submission.py", line 5, in f\nE\n'
    logs = (RankLog(rank=0, text="noise\n" + log), RankLog(rank=-1, text="bye"))
    factory.finish(failed, factory.make_report(failed, Verdict.RUNTIME_ERROR, logs=logs))
    html = page_of(client, f"/kernels/{kernel.source_id}")
    line = next(line for line in html.splitlines() if 'id="L-5"' in line)
    assert "<mark>◂ named by the failure</mark>" in line
    assert '<a href="#L-5">line 5</a>' in html
    text = text_of(html)
    assert "Rank 0: last words Traceback" in text
    assert "Sandbox" in text


def test_hostile_texts_of_a_report_are_only_text(run: Run, client: Client) -> None:
    kernel = step(run, 6, f"# {HOSTILE}\n")
    made = factory.make_run(kernel, world_size=4)
    report = gpu_report.make_gpu_report(made)
    line = report.timelines[0]
    event = replace(line.events[0], name=HOSTILE, kind=EventKind.KERNEL, duration_us=9e3)
    report = replace(
        report,
        timelines=(replace(line, events=(event, *line.events[1:])), *report.timelines[1:]),
        mechanisms=(replace(report.mechanisms[1], detail=f"line 1: {HOSTILE}"),),
        gpus=(replace(report.gpus[0], name=HOSTILE, throttle_reasons=(HOSTILE,)),),
        environment=replace(report.environment, settings={HOSTILE: HOSTILE}),
        logs=(RankLog(rank=0, text=HOSTILE),),
    )
    factory.finish(made, report)
    html = page_of(client, f"/kernels/{kernel.source_id}?diff={run.kernel.source_id}")
    html += page_of(client, f"/runs/{made.id}")
    assert "<img" not in html
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", html)
    assert html.count(SHOWN) >= 14
    figure = client.get(f"/figures/timeline.json?run={made.id}").content.decode()
    assert "<img" not in figure
    assert "\u202e" not in figure
    assert SHOWN in figure


def test_a_disputed_kernel_says_so(run: Run, client: Client) -> None:
    submission = run.kernel.submission
    submission.moderation, submission.moderation_reason = "disputed", "Copies."
    submission.save()
    html = page_of(client, f"/kernels/{run.kernel.source_id}")
    assert '<a class="chip disputed" href="/submissions/' in html


def test_the_digits_that_pages_print_lead_to_the_kernel(run: Run, client: Client) -> None:
    digest = run.kernel.source_id
    answer = client.get(f"/kernels/{digest[:10]}", follow=True)
    assert answer.redirect_chain[-1][0] == f"/kernels/{digest}"
    Submission.objects.update(visibility=Visibility.PRIVATE)
    assert client.get(f"/kernels/{digest[:10]}", follow=True).redirect_chain[-1][0] == (
        f"/search?q={digest[:10]}"
    )
