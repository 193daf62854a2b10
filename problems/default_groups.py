"""Hand over the world in place of None in some hidden trials, where None means the world.

Most references take a group that PKB leaves at its default. So that both are drawn, whatever a
problem's file says, `problems.load` puts this between a file's `make_inputs` and all who call it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from problems.context import RankContext
    from problems.spec import Dims

    MakeInputs = Callable[[RankContext, Dims], dict[str, object]]

MEANING = "None means the default process group"


def with_default_groups(
    make_inputs: MakeInputs, reference: Callable[..., object], statement: str
) -> MakeInputs:
    """Return a `make_inputs` that also draws what a group of None stands for, by the statement."""
    parameters = inspect.signature(reference).parameters
    groups = [
        name
        for name, parameter in parameters.items()
        if "ProcessGroup" in inspect.formatannotation(parameter.annotation)
    ]

    def make(ctx: RankContext, d: Dims) -> dict[str, object]:
        inputs = make_inputs(ctx, d)
        for name in groups:
            if name in inputs and inputs[name] is None:
                inputs[name] = ctx.choose(None, (None, ctx.group("world")))
        return inputs

    return make if MEANING in statement else make_inputs
