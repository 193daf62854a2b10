"""Every figure is valid Plotly, carries its numbers and escapes its names."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest

from leaderboard.figures.charts import boards, categories, curves, drawing, runs, submissions
from leaderboard.figures.charts.boards import ByCategory, ModeCounts, Spread
from leaderboard.figures.charts.curves import Chances, Curve
from leaderboard.figures.charts.runs import LaneEvent, Margin
from leaderboard.figures.charts.submissions import Speedup
from leaderboard.run_pages.timeline_events import waiting_apart

HOSTILE = '<b onmouseover="alert(1)">x</b><a href="javascript:alert(1)">y</a>'


def every_figure(name: str) -> list[drawing.Spec]:
    curve = Curve(model="m", name=name, thresholds=(0.0, 1.0), shares=(0.5, None), published=True)
    chances = Chances(
        model=name, name=name, samples=(1, 3), passing=(0.5, 1.0), fast=(0.0, None), published=True
    )
    return [
        curves.fast_p_curves([curve]),
        boards.failure_modes([ModeCounts(name=name, counts={"correct": 3, "deadlock": 1})]),
        runs.burst_samples([1.0, 1.1], [2.0, 2.1], "call"),
        runs.error_margins([Margin(trial=0, rank=1, max_error=0.0)]),
        submissions.speedups([Speedup(name=name, speedup=2.0, low=1.5, high=2.5)]),
        curves.chances([chances], 1.5),
        boards.spreads([Spread(model=name, name=name, problems=(name,), speedups=(1.5,))]),
        boards.utilisations([ByCategory(model=name, name=name, values=(0.25, None))], [name, "b"]),
        categories.heat_map([ByCategory(model=name, name=name, values=(0.5,))], [name], "pass@1"),
    ]


@pytest.mark.parametrize("number", range(9))
def test_a_figure_is_valid_plotly_and_plain_json(number: int) -> None:
    spec = every_figure("a model")[number]
    go.Figure(spec)
    assert json.loads(json.dumps(spec)) == spec


def test_the_validator_does_reject_nonsense() -> None:
    with pytest.raises(ValueError, match="Invalid property"):
        go.Figure({"data": [{"type": "bar", "no_such_property": 1}]})


def test_names_reach_a_figure_escaped() -> None:
    for spec in every_figure(HOSTILE):
        text = json.dumps(spec)
        assert "<b " not in text
        assert "<a " not in text


def test_long_names_are_cut() -> None:
    assert len(drawing.label("x" * 10_000)) == drawing.LABEL_LENGTH
    assert len(drawing.label("(, n = 1" * 10_000)) <= drawing.LABEL_LENGTH


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (
            "m" * 60 + " (zero-shot, submission 8), n = 19",
            f"{'m' * 23}… (zero-shot, submission 8), n = 19",
        ),
        ("9. " + "p" * 60 + ", n = 4", f"9. {'p' * 37}…, n = 4"),
        ("Model (zero-shot, submission 10), 19 of 74 judged", None),
    ],
)
def test_a_short_label_keeps_what_tells_rows_apart(name: str, shown: str | None) -> None:
    assert drawing.label(name) == (shown or name)


def test_what_has_one_name_has_a_place_of_its_own_on_every_axis() -> None:
    """Plotly would add up bars, pool boxes and write numbers into other columns."""
    long = "x" * drawing.LABEL_LENGTH
    assert drawing.labels(["a", "b", "a", "a, 2", "a"]) == ["a", "b", "a, 2", "a, 2, 2", "a, 3"]
    assert len(set(drawing.labels([f"{long}{i}" for i in range(3)]))) == 3
    twins = [ByCategory(model="m", name="m", values=(share,)) for share in (0.25, 0.75)]
    (heat,) = categories.heat_map(twins, ["one"], "pass@1")["data"]
    assert dict(zip(heat["x"], heat["z"][0], strict=True)) == {"m": 25.0, "m, 2": 75.0}
    modes = boards.failure_modes([ModeCounts(name="m", counts={"correct": n}) for n in (1, 2)])
    assert [trace["y"] for trace in modes["data"]] == [["m, n = 1", "m, n = 2"]] * len(
        modes["data"]
    )
    boxes = [Spread(model="m", name="m", problems=("p",), speedups=(1.5,))] * 2
    assert [trace["name"] for trace in boards.spreads(boxes)["data"]] == [
        "m, n = 1",
        "m, n = 1, 2",
    ]


def test_curves_hold_per_cent_and_leave_gaps() -> None:
    curve = Curve(model="m", name="a", thresholds=(0.0, 1.0, 2.0), shares=(0.5, 0.25, None))
    trace: dict[str, Any] = curves.fast_p_curves([curve])["data"][0]
    assert trace["y"] == [50.0, 25.0, None]


def test_rows_of_one_model_share_its_colour_and_not_its_symbol() -> None:
    first, other, again = boards.styles(["a", "b", "a"])
    assert first.colour == again.colour != other.colour
    assert first.symbol != again.symbol
    # A longer list that begins alike gives the same rows the same looks.
    assert boards.styles(["a", "b", "a", "c"])[:3] == [first, other, again]


def test_a_model_keeps_its_colour_and_nobody_takes_it_while_there_are_others() -> None:
    names = [f"model {n}" for n in range(2 * len(drawing.COLOURS))]
    places = boards.palette_places(names)
    assert len(set(places.values())) == len(names)
    assert len({place for place, _ in list(places.values())[: len(drawing.COLOURS)]}) == 7
    looks = {(style.colour, style.symbol) for style in boards.styles(names)}
    assert len(looks) == len(names)
    # Alone, in another order or in part, by the order of the page.
    assert boards.styles(["model 3"], names) == boards.styles(names)[3:4]
    assert boards.styles(["b", "a"], ["a", "b"]) == boards.styles(["a", "b"])[::-1]
    # Grey is for whom no other colour is left, and one curve alone has a name.
    others = [place for place, _ in list(places.values())[: len(drawing.COLOURS) - 1]]
    assert len(drawing.COLOURS) - 1 not in others
    assert curves.fast_p_curves([])["layout"]["showlegend"]
    assert boards.styles(["model 0"]) == boards.styles(["model 0", "model 1"])[:1]


def test_the_heat_map_writes_its_numbers_and_leaves_gaps() -> None:
    rows = [
        ByCategory(model="a", name="a", values=(0.333, None)),
        ByCategory(model="b", name="b", values=(1.0, 0.0)),
        ByCategory(model="c", name="c", values=(5 / 11, None)),
    ]
    (trace,) = categories.heat_map(rows, ["one", "two"], "pass@1")["data"]
    assert trace["z"] == [[33.3, 100.0, 45.5], [None, 0.0, None]]
    assert trace["text"] == [["33", "100", "45"], ["", "0", ""]]  # as 45.45 is, and not 45.5
    assert trace["textfont"]["size"] >= 11


def test_failure_modes_keep_every_count() -> None:
    counts = {"correct": 28, "deadlock": 5, "output mismatch": 26}
    spec = boards.failure_modes([ModeCounts(name="m", counts=counts)])
    assert {t["name"]: t["x"][0] for t in spec["data"] if t["x"][0]} == counts


def test_speedups_are_ordered_fastest_first_with_their_interval() -> None:
    kernels = [
        Speedup(name="slow", speedup=0.5, low=0.4, high=0.75),
        Speedup(name="fast", speedup=4.0, low=3.0, high=6.0),
    ]
    trace: dict[str, Any] = submissions.speedups(kernels)["data"][0]
    assert trace["y"] == ["fast", "slow"]
    assert trace["error_x"]["array"] == [2.0, 0.25]
    assert trace["error_x"]["arrayminus"] == [1.0, 0.1]


def test_a_histogram_holds_every_burst_and_whole_numbers() -> None:
    few = runs.burst_histogram(runs.burst_bins([1.0, 1.5, 1.5], [2.0] * 3), "calls")
    go.Figure(few)
    assert few["layout"]["yaxis"]["dtick"] == 1
    for trace in few["data"]:
        *_, before, last = trace["y"]
        assert (trace["y"][0], last) == (0, 0)
        assert sum(trace["y"]) - before == 3
        assert trace["x"] == sorted(trace["x"])
        assert len(trace["x"]) == len(trace["y"]) == len(trace["text"])
    many = runs.burst_histogram(runs.burst_bins([1.0] * 9, [2.0] * 9), "calls")
    assert "dtick" not in many["layout"]["yaxis"]


def test_a_timeline_begins_with_what_ran_first() -> None:
    first, last = (
        LaneEvent(
            rank=0, queue="stream", lane=7, name="k", kind=kind, start_us=start, duration_us=5.0
        )
        for kind, start in (("copy", 1100.0), ("kernel", 1200.0))
    )
    spec = runs.timeline([last, first])
    go.Figure(spec)
    assert spec["layout"]["xaxis"]["range"] == [1100.0, 1205.0]
    go.Figure(runs.timeline([]))


def test_charts_loads_without_django_or_plotly() -> None:
    code = "import sys, leaderboard.figures.charts.boards, leaderboard.figures.charts.runs\n"
    code += "sys.exit(bool({'django', 'plotly'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_bundle_in_the_browser_is_the_one_the_validator_knows() -> None:
    from plotly.offline import get_plotlyjs_version

    vendored = json.loads((Path(__file__).parents[2] / "static/vendor/vendor.json").read_text())
    assert vendored[0]["version"] == get_plotlyjs_version()


def test_a_communication_waits_until_the_last_rank_has_begun_its_own() -> None:
    late = event(1, 100.0, 5.0)
    early = event(0, 20.0, 90.0)
    found = {(e.rank, e.kind): (e.start_us, e.duration_us) for e in waiting_apart([early, late])}
    assert found == {
        (0, "waiting"): (20.0, 80.0),
        (0, "communication"): (100.0, 10.0),
        (1, "communication"): (100.0, 5.0),
    }
    assert waiting_apart([early]) == [early], "one rank waits for nobody"
    assert waiting_apart([early, late, event(1, 200.0, 5.0)])[0] == early, "they do not meet"


def event(rank: int, start_us: float, duration_us: float) -> runs.LaneEvent:
    facts = {"queue": "stream", "lane": 7, "name": "all_reduce", "kind": "communication"}
    return runs.LaneEvent(rank=rank, start_us=start_us, duration_us=duration_us, **facts)  # type: ignore[arg-type]
