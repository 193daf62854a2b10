"""Runs one rank of a submission or of the reference: joins the group, maps the slab, calls, signals
done.

It shares its process with the submission, so nothing here protects anything: it only makes honest
submissions work. The judge believes none of it.
"""

from __future__ import annotations

import os
import socket
import time
import traceback

import torch
import torch.distributed as dist

import problems
from evaluator.buffers import memory
from evaluator.buffers.control_page import Command
from evaluator.buffers.memory import Memory
from evaluator.messages.codec import decode
from evaluator.messages.job import Placement
from evaluator.messages.rank_setup import RankSetup, Task, receive_slab, say_joined
from evaluator.rank import hang_report, late_results, one_gpu
from evaluator.rank.calls import Slot, Work
from evaluator.rank.control import RankControl
from evaluator.rank.failure_claim import claim_of
from evaluator.rank.gated import Lane, lane_of, make_gated
from evaluator.rank.kernel_source import SCRATCH, load_entry
from evaluator.rank.series import make_series
from problems.running.mesh import join_world, mesh_groups

CALLS = {Command.CALL: Slot.call, Command.WARM_UP: Slot.call, Command.EMPTY: Slot.skip}
GATED_CALLS = {Command.GATED: Slot.call, Command.GATED_EMPTY: Slot.skip}


def run_rank(
    setup: RankSetup, rank: int, slab_channel: socket.socket, control_fd: int, wake_fd: int
) -> None:
    """Serve the judge's commands until the sandbox is killed, or claim a failure and wait."""
    control, stage = RankControl(control_fd), "import"
    cores = setup.cores[rank] if setup.cores else ()
    try:
        hang_report.prepare(wake_fd)
        device, work = _begin(control, setup, rank, slab_channel)
        slab: Memory | None = None
        lane: Lane | None = None
        stage, slots, armed = "call", list[Slot](), False
        while True:
            command, indices = control.wait_go(armed=armed)
            asked = [slots[index] for index in indices]
            armed = command is Command.WARM_UP or command in GATED_CALLS
            if call := GATED_CALLS.get(command):
                assert lane is not None
                make_gated(lane, call, asked, control)
                continue
            if call := CALLS.get(command):
                for slot in asked:
                    call(slot)
                _finish(device)
            elif command is Command.TASK:
                work = _work_after(slab, control, setup, rank)
                slots, slab, lane = [], None, None
            elif command is Command.SERIES:
                make_series(asked, control.read_plan(), rank, device)
            elif command is Command.LOAD_PLAN:
                slab = slab or memory.open_fd(device, *receive_slab(slab_channel))
                plan = control.read_plan()
                lane = lane or lane_of(control, slab, plan)
                slots = [Slot(slab, work, node) for node in plan["slots"]]
                _keep_to(control.core, cores)
            else:
                control.write_answer(_answer(command, asked, device, rank, cores))
            control.done()
    except BaseException as error:  # noqa: BLE001 - a submission may raise anything
        _give_up(control, claim_of(error, stage))


def _begin(
    control: RankControl, setup: RankSetup, rank: int, channel: socket.socket
) -> tuple[torch.device, Work]:
    """Join the group and load the task, once the judge says go."""
    control.wait_go()
    device = _join(setup, rank, channel)
    work = _work(setup.task, setup.world_size, rank)
    control.done()
    return device, work


def _give_up(control: RankControl, claim: bytes) -> None:
    """Claim a failure, and wait for the judge to end it."""
    traceback.print_exc()
    control.fail(claim)
    while True:
        time.sleep(60)


def _keep_to(core: int | None, others: tuple[int, ...]) -> None:
    """Keep this thread alone to these processors: those that it has started stay where they are."""
    if wanted := {core} if core is not None else others:
        os.sched_setaffinity(0, wanted)


def _answer(
    command: Command, calls: list[Slot], device: torch.device, rank: int, cores: tuple[int, ...]
) -> bytes:
    """Return what the judge asks of a kernel whose verdict is known already."""
    from evaluator.rank.profiler import device_code, record

    def call_all() -> None:
        for slot in calls:
            slot.call()

    if command is Command.PROFILE:
        return record(call_all, device.type)
    if rank:
        return b""  # the ranks share what they built
    _keep_to(None, cores)  # disassemblers need more than one
    return device_code()


def _finish(device: torch.device) -> None:
    """Wait until everything on the GPU is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _join(setup: RankSetup, rank: int, channel: socket.socket) -> torch.device:
    os.environ.update(
        RANK=str(rank),
        LOCAL_RANK=str(rank),
        WORLD_SIZE=str(setup.world_size),
        LOCAL_WORLD_SIZE=str(setup.world_size),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT="29500",
    )
    torch.set_num_threads(setup.threads)
    is_shared, meeting = setup.placement is Placement.SHARED, str(SCRATCH / "rendezvous")
    device = join_world(setup.device, meeting, rank, setup.world_size, is_shared=is_shared)
    say_joined(channel)  # whatever failed before is no fault of the source
    source = setup.task.entry or ""
    if source and dist.get_backend() == "gloo":
        late_results.install()
    if is_shared and device.type == "cuda" and one_gpu.names_devices(source):
        one_gpu.install(setup.world_size)
    return device


def _work(task: Task, world_size: int, rank: int) -> Work:
    """Load what the task names. Collective over the side's ranks."""
    module = problems.load(task.problem)
    dims = module.dims(task.m, task.n, world_size)
    groups = mesh_groups(module.problem.mesh, dims, rank, world_size)
    solution = module.reference if task.entry is None else load_entry(task.entry)
    return Work(solution=solution, groups=groups, names=module.problem.outputs)


def _work_after(slab: Memory | None, control: RankControl, setup: RankSetup, rank: int) -> Work:
    """Load the next task of a reference's rank, which lets the memory of the last one go."""
    if slab is not None:
        memory.close(slab)
    torch.cuda.empty_cache()
    return _work(decode(Task, control.read_plan()), setup.world_size, rank)
