"""State rules that every problem file keeps, as far as one process can tell. See also rank_rules.

A rule takes a problem and returns its complaints, none when all is well.
"""

from __future__ import annotations

import ast
import builtins
import dis
import inspect
from collections.abc import Callable, Mapping
from itertools import pairwise
from math import prod
from types import CodeType

import problems
from problems import ProblemModule
from problems.audit.drawn_options import statement_is_drawn
from problems.audit.mutants import mutants_fit_the_reference
from problems.running.calls import drawn
from problems.sources import reference_source
from problems.spec import DEFAULT_TOLERANCES, Cost, GroupRef, Size
from problems.trials import PROFILES, TrialSpec, correctness_trials, timed_trial
from problems.values import equal_tensors, tensors

NAMES = ["problem", "dims", "make_inputs", "reference", "cost"]
OPTIONAL = {"oracle", "keys", "settle"}
SUMMARY_CHARACTERS = 100
SIZES = ["tiny", "standard", "large"]
STANDARD = Size(m=1024, n=1024)
# NVLink 4 and HBM of an H200 (one way; datasheet) and ten launches of about 5 us each.
LINK_BYTES_PER_S, HBM_BYTES_PER_S, FLOPS_PER_S = 450e9, 4.8e12, 990e12
LARGE_ENOUGH_S = 50e-6

Inputs = dict[str, object]
Complaints = list[str]


def file_shape(module: ProblemModule) -> Complaints:
    body = ast.parse(module.path.read_text()).body
    named = [
        node.name if isinstance(node, ast.FunctionDef) else ast.unparse(node.targets[0])
        for node in body
        if isinstance(node, (ast.FunctionDef, ast.Assign))
    ]
    public = [name for name in named if not name.startswith("_") and name not in OPTIONAL]
    if public != NAMES:
        return [f"the file defines {', '.join(public)}; it must define {', '.join(NAMES)}"]
    if (module.keys is None) is not (module.settle is None):
        return ["keys and settle come together"]
    return []


def reference_runs_alone(module: ProblemModule) -> Complaints:
    """Complain of a text for models that needs more than torch."""
    space: dict[str, object] = {}
    text = reference_source(module)
    exec(compile(text, module.slug, "exec", dont_inherit=True), space)
    known = set(space) | set(dir(builtins))
    used = {
        instruction.argval
        for value in space.values()
        if inspect.isfunction(value)
        for code in _nested_code(inspect.unwrap(value).__code__)
        for instruction in dis.get_instructions(code)
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    }
    return [f"the reference uses {name} from outside" for name in sorted(used - known)]


def metadata(module: ProblemModule) -> Complaints:
    problem, parameters = module.problem, inspect.signature(module.reference).parameters
    texts = ("title", "source", "domain", "summary", "statement", "topology", "tolerance_reason")
    complaints = [f"{name} is empty" for name in texts if not getattr(problem, name).strip()]
    complaints += [
        f"the statement does not name the argument {name}"
        for name in parameters
        if name not in problem.statement
    ]
    if len(problem.summary) > SUMMARY_CHARACTERS:
        complaints.append(f"the summary is longer than {SUMMARY_CHARACTERS} characters")
    if not problem.outputs:
        complaints.append("outputs is empty")
    if unknown := set(problem.mutates) - set(parameters):
        complaints.append(f"mutates names {unknown}, which are no arguments")
    if list(problem.sizes)[:3] != SIZES:
        complaints.append(f"sizes must begin with {', '.join(SIZES)}")
    elif problem.sizes["standard"] != STANDARD:
        complaints.append("size standard must be PKB's 1024 x 1024")
    if set(problem.tolerances) != set(DEFAULT_TOLERANCES):
        complaints.append(f"tolerances are wanted for {', '.join(DEFAULT_TOLERANCES)}")
    for output, own in problem.output_tolerances.items():
        pairs = [(own[dtype], limit) for dtype, limit in problem.tolerances.items()]
        looser = any(a.atol > b.atol or a.rtol > b.rtol for a, b in pairs)
        if looser or output not in (*problem.outputs, *problem.mutates):
            complaints.append(f"output_tolerances: {output} is no output, or has a looser one")
    if problem.ranked_from not in problem.world_sizes:
        complaints.append(f"it is ranked from {problem.ranked_from} ranks, no world size of it")
    if (problem.ranked_from > min(problem.world_sizes)) is (problem.ranked_from_reason is None):
        complaints.append("ranked_from_reason says why some world sizes are not ranked")
    categories = set(problems.CATEGORIES.values()) - {module.category_title}
    return complaints + [f"also: {c} is no other category" for c in set(problem.also) - categories]


def inputs_follow_the_signature(module: ProblemModule) -> Complaints:
    """Complain of other arguments than the reference's; PKB leaves some with defaults out."""
    parameters = inspect.signature(module.reference).parameters
    required = [name for name, one in parameters.items() if one.default is one.empty]
    complaints = []
    for profile in PROFILES:
        given = list(inputs_of(module, _trials(module, profile)[0], profile))
        least = required if profile == "upstream" else parameters
        if given != list(parameters)[: max(len(given), len(least))]:
            told = f"{', '.join(given)}; the reference takes {', '.join(parameters)}"
            complaints.append(f"{profile} inputs are {told}")
    return complaints


def inputs_can_be_repeated(module: ProblemModule) -> Complaints:
    return [
        f"{profile} inputs differ when trial {spec.trial} is drawn again"
        for profile in PROFILES
        for spec in _trials(module, profile)
        if not identical(*(inputs_of(module, spec, profile) for _ in range(2)))
    ]


def ranks_differ(module: ProblemModule) -> Complaints:
    return [
        f"{profile} inputs are the same on ranks 0 and 1"
        for profile in PROFILES
        for spec in _trials(module, profile)[:1]
        if identical(*(inputs_of(module, spec, profile, rank=rank) for rank in (0, 1)))
    ]


def trials_differ(module: ProblemModule) -> Complaints:
    timed = [timed_trial(module.problem, "tiny", trial, b"rules") for trial in (100, 101)]
    trials = [inputs_of(module, spec) for spec in (*_trials(module, "hardened"), *timed)]
    same = [index for index, pair in enumerate(pairwise(trials)) if identical(*pair)]
    return [f"hardened trials {index} and {index + 1} have the same inputs" for index in same]


def hidden_shapes_can_be_built(module: ProblemModule) -> Complaints:
    complaints = []
    for world_size in module.problem.world_sizes:
        for spec in _trials(module, "hardened"):
            inputs = inputs_of(module, spec, rank=world_size - 1, world_size=world_size)
            if not any(t.numel() for value in inputs.values() for t in tensors(value)):
                complaints.append(f"no input holds anything in trial {spec.trial} of {world_size}")
    return complaints


def groups_lie_on_the_mesh(module: ProblemModule) -> Complaints:
    complaints = []
    for world_size in module.problem.world_sizes:
        spec = _trials(module, "hardened")[0]
        d = module.dims(spec.m, spec.n, world_size)
        axes = [axis for axis in module.problem.mesh if axis != "world"]
        if prod(getattr(d, axis) for axis in axes) not in (1, world_size):
            complaints.append(f"the mesh does not hold {world_size} ranks")
        values = inputs_of(module, spec, world_size=world_size).values()
        used = {value.axis for value in values if isinstance(value, GroupRef)}
        if unknown := used - {"world", *axes}:
            complaints.append(f"groups along {', '.join(unknown)} are on no mesh axis")
    return complaints


def dims_are_integers(module: ProblemModule) -> Complaints:
    return [
        f"dims: {name} is {value!r} at size {size_name}"
        for size_name, size in module.problem.sizes.items()
        for name, value in vars(module.dims(size.m, size.n, 4)).items()
        if type(value) is not int
    ]


def cost_is_positive_and_grows(module: ProblemModule) -> Complaints:
    complaints = []
    for world_size in module.problem.world_sizes:
        costs = [
            module.cost(module.dims(size.m, size.n, world_size), world_size, 2)
            for size in map(module.problem.sizes.__getitem__, SIZES)
        ]
        if not all(c.wire_bytes >= 0 and c.hbm_bytes > 0 and c.flops >= 0 for c in costs):
            complaints.append(f"a cost of {world_size} ranks is negative")
        if not all(c.exchanges >= 1 for c in costs):
            complaints.append("every problem has at least one exchange")
        is_constant = module.problem.latency_bound_reason is not None
        if not all(_grows(small, big, is_constant) for small, big in pairwise(costs)):
            complaints.append(f"the cost of {world_size} ranks does not grow from size to size")
    return complaints


def large_is_bound_by_data(module: ProblemModule) -> Complaints:
    """Complain of a `large` under ten launches on NVLink 4 where no reason is given for it."""
    size = module.problem.sizes["large"]
    cost = module.cost(module.dims(size.m, size.n, 4), 4, 2)
    least_s = max(
        cost.wire_bytes / LINK_BYTES_PER_S,
        cost.hbm_bytes / HBM_BYTES_PER_S,
        cost.flops / FLOPS_PER_S,
    )
    if least_s < LARGE_ENOUGH_S and module.problem.latency_bound_reason is None:
        return [f"size large takes {least_s * 1e6:.3g} us at least: less than ten launches"]
    return []


def options_are_drawn(module: ProblemModule) -> Complaints:
    """Complain of what a statement says may vary and no hidden trial of a run varies."""
    return statement_is_drawn(
        module,
        lambda world_size: [
            inputs_of(module, spec, world_size=world_size) for spec in _trials(module, "hardened")
        ],
    )


RULES: Mapping[str, Callable[[ProblemModule], Complaints]] = {
    rule.__name__: rule
    for rule in (
        file_shape,
        reference_runs_alone,
        metadata,
        inputs_follow_the_signature,
        inputs_can_be_repeated,
        ranks_differ,
        trials_differ,
        hidden_shapes_can_be_built,
        groups_lie_on_the_mesh,
        dims_are_integers,
        cost_is_positive_and_grows,
        large_is_bound_by_data,
        mutants_fit_the_reference,
        options_are_drawn,
    )
}


def inputs_of(
    module: ProblemModule,
    spec: TrialSpec,
    profile: str = "hardened",
    *,
    rank: int = 0,
    world_size: int = 2,
) -> Inputs:
    return drawn(module, spec, rank, world_size, profile=profile, secret=b"rules")[1]


def shapes_of(inputs: Inputs) -> Inputs:
    """Return shapes of tensors, and values of everything else."""
    return {
        name: [t.shape for t in tensors(value)] if tensors(value) else value
        for name, value in inputs.items()
    }


def identical(one: Inputs, other: Inputs) -> bool:
    return shapes_of(one) == shapes_of(other) and all(equal_tensors(one[n], other[n]) for n in one)


def _trials(module: ProblemModule, profile: str) -> tuple[TrialSpec, ...]:
    return correctness_trials(module.problem, "tiny", profile, 6, b"rules")


def _nested_code(code: CodeType) -> list[CodeType]:
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    return [code, *(found for c in inner for found in _nested_code(c))]


def _grows(small: Cost, big: Cost, may_be_constant: bool) -> bool:
    """Tell that nothing is less, and memory or bytes on the wire are more."""
    moved, moved_then = (c.hbm_bytes + c.wire_bytes for c in (small, big))
    return (
        small.wire_bytes <= big.wire_bytes
        and small.flops <= big.flops
        and (moved < moved_then or (may_be_constant and moved == moved_then))
    )
