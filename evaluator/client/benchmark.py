"""Holds the benchmark without torch: statements, references, prompts and costs of all problems."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

from . import told

CPU = "cpu"
USUAL = {CPU: ("tiny", "float32")}
USUAL_ON_GPUS = ("standard", "bfloat16")


class Cost(NamedTuple):
    """Holds the least that the busiest rank of a call must do.

    Bytes sent or received, floating-point operations, bytes of its memory moved, exchanges that
    wait for each other. Bytes are those of bfloat16.
    """

    wire_bytes: float
    flops: float
    hbm_bytes: float
    exchanges: int


class BenchmarkProblem:
    """Describes one problem. `payload` is its whole entry in the catalogue."""

    def __init__(self, payload: Mapping[str, Any]) -> None:
        self.payload = payload
        self.number = int(payload["number"])
        self.slug = str(payload["slug"])
        self.title = str(payload["title"])
        self.category = str(payload["category"])
        self.statement = str(payload["statement"])
        self.reference_source = str(payload["reference_source"])
        self.digest = str(payload["digest"])
        self.sizes: tuple[str, ...] = tuple(payload["sizes"])
        self.dtypes: tuple[str, ...] = tuple(payload["tolerances"])
        self.world_sizes: tuple[int, ...] = tuple(payload["world_sizes"])

    def __repr__(self) -> str:
        return f"<problem {self.number} {self.slug}>"

    @property
    def signature(self) -> str:
        """Return the line `def solution(...)`, without a body."""
        return str(told.part("prompt").signature(self.reference_source))

    def cost(self, size: str = "standard", world_size: int = 4) -> Cost:
        """Return the least cost of a call. Raises KeyError for a size or ranks it has not."""
        found = self.payload["costs"][size][str(world_size)]
        return Cost(**{name: found[name] for name in Cost._fields})

    def prompt(
        self,
        backend: str = "cuda",
        hardware: str = "h200x4",
        world_size: int | None = None,
        size: str | None = None,
        dtype: str | None = None,
    ) -> str:
        """Return the prompt of the problem, the same text as the site's API gives.

        What is left out is usual for the hardware: as many ranks as fit, `standard` and bfloat16,
        or `tiny` and float32 on `cpu`. Raises ValueError for what problem or hardware has not.
        """
        topology, prompts = told.part("topology"), told.part("prompt")
        known = topology.class_called(hardware)
        text = topology.problem_text(known, self.payload)
        if text is None:
            raise ValueError(f"{self.slug} is not judged on {hardware}: it has too few ranks")
        usual_size, usual_dtype = USUAL.get(known.device, USUAL_ON_GPUS)
        made = prompts.prompt(
            self.payload,
            backend=backend,
            hardware_text=text,
            world_size=world_size or max(n for n in self.world_sizes if n <= known.ranks),
            dtype=dtype or usual_dtype,
            size=size or usual_size,
        )
        return f"{made}{prompts.FENCED}"


class Benchmark(Mapping[str, BenchmarkProblem]):
    """Maps slugs to the 87 problems, in the order of their numbers; numbers are keys, too.

    Needs neither torch nor a site.
    """

    def __init__(self) -> None:
        rows = json.loads(told.CATALOGUE.read_text(encoding="utf-8"))["problems"]
        found = sorted(map(BenchmarkProblem, rows), key=lambda each: each.number)
        self._problems = {each.slug: each for each in found}
        self._numbers = {each.number: each for each in found}

    def __getitem__(self, name: str | int) -> BenchmarkProblem:
        """Return a problem by slug or number. Raises KeyError that names what is near."""
        if isinstance(name, str) and name in self._problems:
            return self._problems[name]
        if str(name).isdecimal() and len(str(name)) < 5 and int(name) in self._numbers:
            return self._numbers[int(name)]
        near = get_close_matches(str(name), self._problems, n=3, cutoff=0.5)
        meant = f"; did you mean {' or '.join(near)}?" if near else ""
        raise KeyError(f"there is no problem {name}{meant}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._problems)

    def __len__(self) -> int:
        return len(self._problems)

    @property
    def categories(self) -> Mapping[str, tuple[BenchmarkProblem, ...]]:
        """Return the problems of each category, by its name."""
        found: dict[str, list[BenchmarkProblem]] = {}
        for each in self.values():
            found.setdefault(each.category, []).append(each)
        return {name: tuple(each) for name, each in found.items()}
