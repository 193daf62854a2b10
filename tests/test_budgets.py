"""The house style's budgets, kept by reading the tree."""

from __future__ import annotations

import ast
import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import problems

ROOT = Path(__file__).resolve().parent.parent
FUNCTION_LINES, MODULE_LINES, PROBLEM_LINES, TEMPLATE_LINES, PARAMETERS = 40, 500, 100, 120, 6
BANNED_NAMES = {"utils", "helpers", "common", "misc", "core", "base", "manager"}
OTHER_PEOPLES_INTERFACE = "evaluator/compat/"
# Django wants a class of that name in each.
NAMED_BY_OTHERS = ("leaderboard/migrations/", "leaderboard/management/commands/")

# A problem decides how many arguments these take.
PROBLEM_SIGNATURE = {"reference", "oracle", "keys", "solution"}

# Longer than the budget, each with its reason.
LONG: dict[str, str] = {
    f"problems/{name}.py": reason
    for name, reason in {
        "context_parallel/fla_gated_deltanet_cp": "a chunked recurrence between two re-shardings",
        "context_parallel/hyena_forward_cp": "nine arguments and two re-shardings",
        "context_parallel/magi1_cso_async_attention": "shuffled chunks, overlapped exchanges",
        "context_parallel/ring_attention_backward_dp": "two rings, and inputs of all ranks",
        "context_parallel/ulysses_attention_e2e": "attention between two re-shardings",
        "data_parallel/ddp": "nineteen arguments and twelve outputs",
        "data_parallel/dinov2_distributed_knn": "keys and settle for ties",
        "data_parallel/importance_sampling_loss": "a loss in parts, with metrics",
        "data_parallel/openclip_contrastive_loss": "near-duplicates that no block format holds",
        "data_parallel/quantized_grad_allreduce": "keys and settle for ties",
        "data_parallel/sam3_allgather_iou_suppression": "sizes of a published plot",
        "expert_parallel/fused_moe_fwd": "routing, exchanges and experts",
        "expert_parallel/fused_moe_fwd_lora": "fused_moe_fwd with six adapter matrices",
        "expert_parallel/moe_ep_balanced": "routing, exchanges and experts",
        "expert_parallel/moe_ep_narrow": "routing by group, and experts",
        "expert_parallel/moe_ep_wide": "routing, exchanges and experts",
        "expert_parallel/moe_post_all2all": "eleven arguments that must fit each other",
        "expert_parallel/moe_pre_all2all": "routing that must fit the splits",
        "fsdp_zero/deepmd_kalman_filter_optimizer": "lists of matrices, changed in place",
        "fsdp_zero/fp8_allgather_params": "keys and settle for ties",
        "fsdp_zero/fp8_reduce_scatter_grads": "keys and settle for ties",
        "fsdp_zero/fsdp_step_e2e": "a whole training step",
        "fsdp_zero/zero1_optimizer_shard": "a whole training step",
        "fsdp_zero/zero2_optimizer_shard_grad": "a whole training step",
        "geometric_spatial/gsplat_3d_gaussian_splatting": "projection, then seven outputs",
        "geometric_spatial/magi1_tile_parallel_vae_decode": "tiles, a decoder and three blends",
        "geometric_spatial/torchharmonics_spherical_convolution": "a sparse convolution on a mesh",
        "graph_parallel/gnn_neighbor_sampling": "three exchanges per hop, then relabelling",
        "other/torchrec_kjt_all2all": "jagged features in three modes",
        "pipeline_parallel/ring_attention_pp": "a ring in every stage of a pipeline",
        "tensor_parallel/fla_kimi_delta_attention_cp_tp": "a chunked recurrence on a mesh",
        "tensor_parallel/fsdp_and_tp": "three matrices on a mesh",
        "tensor_parallel/ring_attention_tp": "a ring across a tensor-parallel mesh",
        "tensor_parallel/tp_muon_orthogonalization": "coefficients by name and by step",
        "vocab_parallel/vocab_parallel_cross_entropy_loss": "logits that may be overwritten",
        "vocab_parallel/vocab_parallel_log_prob_topk": "logits with a safe top-p cut",
        "vocab_parallel/vocab_parallel_log_prob_topk_chunked": "logits with a safe top-p cut",
        "vocab_parallel/vocab_parallel_log_prob_topk_chunked_backward": "a safe top-p cut",
    }.items()
}
# `path::function`, each with its reason.
LONG_FUNCTIONS: dict[str, str] = {}
MANY_PARAMETERS: dict[str, str] = {
    "tests/evaluator/gpu/honest/triton_barrier_within.py::publish_and_sum": "a launch of Triton's",
}


@cache
def _tracked(*suffixes: str) -> list[str]:
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [p for p in listed.stdout.splitlines() if p.endswith(suffixes) and (ROOT / p).exists()]


@cache
def _modules() -> list[str]:
    """Python that we write: neither generated migrations nor hostile kernels."""
    left_out = ("leaderboard/migrations/", "tests/evaluator/misbehaving/", "fixtures/")
    return [path for path in _tracked(".py") if not path.startswith(left_out)]


def _line_budget(path: str) -> int:
    parts = Path(path).parts
    is_problem = parts[0] == "problems" and parts[1] in problems.CATEGORIES
    return PROBLEM_LINES if is_problem else MODULE_LINES


class Function(NamedTuple):
    """What a budget asks of a function. `lines` are counted from the signature on, or from the body
    on where the problem decides the signature."""

    name: str
    lines: int
    parameters: int


@cache
def _functions(path: str) -> tuple[Function, ...]:
    nodes = ast.walk(ast.parse((ROOT / path).read_text(), path))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return tuple(_described(node) for node in nodes if isinstance(node, kinds))


def _all_functions() -> list[tuple[str, Function]]:
    return [(f"{path}::{own.name}", own) for path in _modules() for own in _functions(path)]


def _described(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Function:
    assert node.end_lineno is not None
    first = node.body[0] if node.name in PROBLEM_SIGNATURE else node
    given = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    parameters = sum(argument.arg not in ("self", "cls") for argument in given)
    return Function(node.name, node.end_lineno - first.lineno + 1, parameters)


@cache
def _length(path: str) -> int:
    return len((ROOT / path).read_text().splitlines())


def test_modules_and_templates_fit_their_budgets() -> None:
    budgets = {path: _line_budget(path) for path in _modules() if path not in LONG}
    budgets |= dict.fromkeys(_tracked(".html"), TEMPLATE_LINES)
    assert len(budgets) > 1000
    assert not {path: _length(path) for path, most in budgets.items() if _length(path) > most}


def test_functions_are_short() -> None:
    long = [(name, own.lines) for name, own in _all_functions() if own.lines > FUNCTION_LINES]
    assert {name for name, _ in long} == LONG_FUNCTIONS.keys(), long


def test_functions_take_few_parameters() -> None:
    wide = [
        (name, own.parameters)
        for name, own in _all_functions()
        if own.parameters > PARAMETERS and own.name not in PROBLEM_SIGNATURE
    ]
    assert {name for name, _ in wide} == MANY_PARAMETERS.keys(), wide


def test_no_module_has_a_name_that_says_nothing() -> None:
    modules = [path for path in _modules() if not path.startswith(OTHER_PEOPLES_INTERFACE)]
    names = {path: {Path(path).stem, *Path(path).parts[:-1]} for path in modules}
    assert not {path for path, words in names.items() if words & BANNED_NAMES}


@pytest.mark.parametrize("package", ["problems", "evaluator", "leaderboard"])
def test_a_public_class_shares_its_name_with_no_other_of_its_package(package: str) -> None:
    places: dict[str, list[str]] = {}
    for path in _modules():
        if path.startswith(f"{package}/") and not path.startswith(NAMED_BY_OTHERS):
            for node in ast.parse((ROOT / path).read_text()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places.setdefault(node.name, []).append(path)
    assert len(places) > 10
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_every_exception_is_still_needed() -> None:
    assert not [path for path in LONG if _length(path) <= _line_budget(path)]
