"""Samples become numbers beside a datasheet, and a measuring process that fails is told about."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator import EvaluatorError
from evaluator.calibration import calibrate
from evaluator.calibration import rank as calibrate_rank
from evaluator.calibration.calibrate import Crew, lines_of, summary
from evaluator.calibration.measurements import (
    QUANTITIES,
    Calibration,
    Missed,
    Said,
    Samples,
    measured,
    merged,
    pretty,
    share,
)
from evaluator.calibration.on_gpus import turns_of_pairs
from evaluator.host.gpus import Gpu
from evaluator.host.host import Host
from evaluator.messages.codec import decode, encode
from evaluator.messages.report import GpuState
from evaluator.timing.limits import HardwareLimits, limits_of

GPUS = tuple(
    Gpu(index=i, minor=i, uuid=f"GPU-{i}", name="NVIDIA H200", memory_bytes=141 << 30)
    for i in range(2)
)
STATE = GpuState(
    name="NVIDIA H200",
    sm_mhz=1755,
    memory_mhz=3201,
    temperature_c=51,
    power_w=690.4,
    throttle_reasons=("power cap",),
)
LINK = Samples(quantity="link", where="0 to 1", samples=(380.0, 400.0, 390.0))
BACK = Samples(quantity="link", where="1 to 0", samples=(370.0, 371.0, 372.0))
BARRIER = Samples(quantity="barrier", where="all", samples=(3.0, 4.0, 8.0))


def h200() -> HardwareLimits:
    limits = limits_of("NVIDIA H200")
    assert limits is not None
    return limits


def crew(folder: Path, *said: Said, gpus: tuple[Gpu, ...] = ()) -> Crew:
    return Crew(folder=folder, host=Host(gpus=gpus, threads=1), said=list(said))


def calibration(folder: Path) -> Calibration:
    said = [
        Said(versions={"torch": "2.11", "NCCL": "2.28.9"}),
        *(Said(found=found) for found in (BARRIER, LINK, BACK)),
        Said(missed=Missed(what="float8, GPU 0", reason="RuntimeError: no such unit")),
    ]
    found = summary(crew(folder, *said, gpus=GPUS), wall_s=41.26)
    return replace(found, states=(STATE, replace(STATE, throttle_reasons=())), driver="580.1")


def test_rates_are_best_at_their_highest_and_times_at_their_shortest() -> None:
    link, barrier = measured(LINK, h200()), measured(BARRIER, h200())
    assert (link.median, link.best, link.samples, link.unit) == (390.0, 400.0, 3, "GB/s")
    assert (barrier.median, barrier.best, barrier.unit) == (4.0, 3.0, "us")
    assert link.datasheet == 450.0
    assert share(link) == pytest.approx(390 / 450)
    assert barrier.datasheet is None
    assert share(barrier) is None


def test_a_time_near_the_datasheets_has_the_larger_share() -> None:
    signal = Samples(quantity="signal", where="0 and 1", samples=(2.0,))
    assert share(measured(signal, replace(h200(), latency_us=0.5))) == pytest.approx(0.25)


def test_unlisted_hardware_is_measured_without_a_datasheet() -> None:
    assert measured(LINK, None).datasheet is None


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_what_the_datasheet_states_is_found_for_every_quantity(quantity: str) -> None:
    limits = replace(h200(), latency_us=0.5)
    own = measured(Samples(quantity=quantity, where="all", samples=(1.0,)), limits)
    assert (own.datasheet is None) == (QUANTITIES[quantity].stated is None)


def test_of_an_exchange_the_slowest_rank_counts_in_every_sample() -> None:
    times = [
        Samples(quantity="barrier", where="all", samples=(1.0, 5.0)),
        Samples(quantity="barrier", where="all", samples=(2.0, 4.0)),
    ]
    rates = [
        Samples(quantity="all_to_all", where="all", samples=(300.0, 350.0)),
        Samples(quantity="all_to_all", where="all", samples=(310.0, 340.0, 330.0)),
    ]
    together = merged([*times, *rates, LINK, BACK])
    assert {(own.quantity, own.where): own.samples for own in together} == {
        ("barrier", "all"): (2.0, 5.0),
        ("all_to_all", "all"): (300.0, 340.0),
        ("link", "0 to 1"): LINK.samples,
        ("link", "1 to 0"): BACK.samples,
    }


def test_a_calibration_survives_json(tmp_path: Path) -> None:
    before = calibration(tmp_path)
    after = decode(Calibration, json.loads(json.dumps(encode(before))))
    assert after == before
    assert after.gpus == ("NVIDIA H200", "NVIDIA H200")
    assert after.unmeasured == {"float8, GPU 0": "RuntimeError: no such unit"}
    assert after.wall_s == 41.3
    assert set(after.settings) == {
        "NCCL_NVLS_ENABLE",
        "TORCH_SYMM_MEM_DISABLE_MULTICAST",
        "NVSHMEM_DISABLE_NVLS",
    }


def test_the_table_shows_what_was_measured_stated_and_missed(tmp_path: Path) -> None:
    text = pretty(calibration(tmp_path))
    (link,) = [line for line in text.splitlines() if line.startswith("link, one pair")]
    assert link.split() == ["link,", "one", "pair", "371", "-", "390", "400", "GB/s", "450", "82%"]
    (barrier,) = [line for line in text.splitlines() if "barrier" in line]
    assert barrier.split()[-3:] == ["4.00", "3.00", "us"]
    assert text.index("link") < text.index("barrier")
    assert "not measured: float8, GPU 0: RuntimeError: no such unit" in text
    assert "GPU 0 at its most power: 1755 MHz, memory 3201 MHz, 690 W, 51 C, slowed by" in text
    assert "driver 580.1" in text
    assert "NCCL 2.28.9" in text


def test_different_gpus_in_one_host_have_no_common_datasheet(tmp_path: Path) -> None:
    mixed = (GPUS[0], replace(GPUS[1], name="NVIDIA H100 80GB HBM3"))
    found = summary(crew(tmp_path, Said(found=LINK), gpus=mixed), wall_s=1.0)
    assert found.measurements[0].datasheet is None


def test_nothing_measured_is_an_error_with_its_reasons(tmp_path: Path) -> None:
    missed = Said(missed=Missed(what="rank 0", reason="ended with 1: no driver"))
    with pytest.raises(EvaluatorError, match="no driver"):
        summary(crew(tmp_path, missed), wall_s=1.0)


@pytest.mark.parametrize("world_size", [-1, 0, 1, 99])
def test_a_host_without_enough_gpus_is_told_so(world_size: int) -> None:
    with pytest.raises(EvaluatorError, match="2 or more, and this host offers"):
        calibrate.calibrate(world_size)


def test_a_measurement_that_fails_is_told_with_its_reason() -> None:
    said: list[Said] = []

    def fails() -> list[float]:
        raise RuntimeError("out of memory\x1b[31m" + "!" * 1000)

    calibrate_rank.attempt(said.append, "hbm_copy", "GPU 0", fails)
    calibrate_rank.attempt(said.append, "hbm_read", "GPU 0", lambda: [1.0, 2.0])
    assert said[0].missed is not None
    assert said[0].missed.what == "hbm_copy, GPU 0"
    assert said[0].missed.reason.startswith("RuntimeError: out of memory\ufffd[31m!")
    assert len(said[0].missed.reason) == calibrate.MOST_REASON_CHARS
    assert said[1].found == Samples(quantity="hbm_read", where="GPU 0", samples=(1.0, 2.0))


def test_a_torn_line_takes_no_other_with_it(tmp_path: Path) -> None:
    path = tmp_path / "0.jsonl"
    whole = json.dumps(encode(Said(found=LINK)))
    path.write_text(f'{whole}\n{{"surprise": 1}}\n{whole[:40]}')
    assert lines_of(path) == [Said(found=LINK)]
    assert lines_of(tmp_path / "none.jsonl") == []


def speaking(path: Path, then: str) -> list[str]:
    """A program that says one thing that it found, and then does something else."""
    line = json.dumps(encode(Said(found=LINK)))
    code = f"import sys, time\nopen({str(path)!r}, 'w').write({line + chr(10)!r})\n{then}"
    return [sys.executable, "-c", code]


def test_a_process_that_dies_leaves_what_it_found_and_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibrate, "GRACE_S", 0.5)
    own = crew(tmp_path)
    programs = {
        "0": speaking(tmp_path / "0.jsonl", "sys.exit('no room left')"),
        "1": speaking(tmp_path / "1.jsonl", "time.sleep(600)"),
        "2": speaking(tmp_path / "2.jsonl", ""),
    }
    began = time.monotonic()
    own.run(programs, limit_s=300.0)
    assert time.monotonic() - began < 60
    assert [said for said in own.said if said.found is not None] == [Said(found=LINK)] * 3
    reasons = {said.missed.what: said.missed.reason for said in own.said if said.missed is not None}
    assert reasons == {
        "rank 0": "ended with 1: no room left",
        "rank 1": "stopped: it waited for 0, which failed",
    }


def test_a_process_that_hangs_is_stopped_at_the_limit(tmp_path: Path) -> None:
    own = crew(tmp_path)
    alive = tmp_path / "alive"
    breathes = f"while True:\n    open({str(alive)!r}, 'a').write('.')\n    time.sleep(0.01)"
    own.run({"peers": speaking(tmp_path / "peers.jsonl", breathes)}, limit_s=3.0)
    reasons = [said.missed for said in own.said if said.missed is not None]
    assert reasons == [Missed(what="peers", reason="stopped: it took more than 3 s")]
    breaths = alive.stat().st_size
    time.sleep(0.2)
    assert alive.stat().st_size == breaths


def test_a_measuring_process_without_gpus_says_so_for_each_pair(tmp_path: Path) -> None:
    own = crew(tmp_path, gpus=GPUS)  # which no driver knows
    own.run(calibrate.programs([calibrate.PEERS], own), limit_s=120.0)
    reasons = {said.missed.what: said.missed.reason for said in own.said if said.missed is not None}
    assert set(reasons) == {"link, 0 to 1", "link, 1 to 0", "links, all"}
    assert all("CUDA" in reason or "device" in reason for reason in reasons.values())


@pytest.mark.gpu(2)
def test_two_gpus_reach_most_of_what_their_datasheet_states() -> None:
    found = calibrate.calibrate(2)
    assert found.wall_s < 60
    assert found.unmeasured == {}
    by_quantity = {own.quantity: own for own in found.measurements}
    assert set(by_quantity) == set(QUANTITIES)
    shares = {name: part for name, own in by_quantity.items() if (part := share(own)) is not None}
    assert shares
    assert {name: part for name, part in shares.items() if not 0.3 < part < 1.1} == {}
    assert by_quantity["signal"].best < by_quantity["signal_kernels"].best
    assert decode(Calibration, json.loads(json.dumps(encode(found)))) == found


@pytest.mark.parametrize("world_size", [2, 3, 4, 8])
def test_no_gpu_has_two_turns_at_once(world_size: int) -> None:
    """Where all others wrote to GPU 0 first, four GPUs reached 217 GB/s each, NCCL 312."""
    turns = turns_of_pairs(world_size)
    assert len(set(turns)) == len(turns) == world_size * (world_size - 1)
    for start in range(0, len(turns), world_size):
        sources, targets = zip(*turns[start : start + world_size], strict=True)
        assert sorted(sources) == sorted(targets) == list(range(world_size))
