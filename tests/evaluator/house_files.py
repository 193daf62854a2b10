"""The kernels in fixtures/house: their names and headers, read."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from evaluator.messages.job import Backend

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
HOUSE = FIXTURES / "house"
# At `standard`: of judges before the tenth, whose timelines tell what GPUs do, and of the tenth.
REPORTS = sorted((FIXTURES / "reports").glob("*-house-kernels.jsonl.gz"))
TIMED = FIXTURES / "reports" / "h200x2-house-kernels-judge-10.jsonl.gz"
KEYS = ("house", "mechanism", "limiter", "exchanges")
_NAME = re.compile(r"(?P<number>\d+)_(?P<slug>\w+)_(?P<backend>triton|cuda)")


class MalformedHouseKernel(ValueError):
    """A file's name or header cannot be read; the message says which and what is missing."""


@dataclass(frozen=True, kw_only=True)
class HouseKernel:
    """One kernel; `exchanges` is how many steps must wait for another rank, with the rest of its
    line left out."""

    path: Path
    number: int
    slug: str
    backend: Backend
    mechanism: str
    limiter: str
    exchanges: int

    @property
    def source(self) -> str:
        return self.path.read_text()


def all_house_kernels() -> list[HouseKernel]:
    """Return them by number."""
    return sorted(map(read, HOUSE.glob("*.py")), key=lambda kernel: kernel.number)


def read(path: Path) -> HouseKernel:
    """Read a file's name and the comments that it begins with; raise MalformedHouseKernel."""
    named, header = _NAME.fullmatch(path.stem), _header(path)
    if named is None or tuple(header) != KEYS:
        raise MalformedHouseKernel(
            f"{path.name}: name it <number>_<slug>_<triton or cuda>.py, and begin with "
            f"{', '.join(f'`# {key}: ...`' for key in KEYS)}; found {', '.join(header) or 'none'}"
        )
    if header["house"] != f"{named['number']} {named['slug']}":
        raise MalformedHouseKernel(f"{path.name}: its header says {header['house']}")
    count = re.match(r"\d+\b", header["exchanges"])
    if count is None:
        raise MalformedHouseKernel(f"{path.name}: `exchanges` must begin with a number")
    return HouseKernel(
        path=path,
        number=int(named["number"]),
        slug=named["slug"],
        backend=Backend(named["backend"]),
        mechanism=header["mechanism"],
        limiter=header["limiter"],
        exchanges=int(count[0]),
    )


def jitted(source: str) -> dict[str, ast.FunctionDef]:
    """Return the functions of a source that Triton compiles, by name."""
    return {
        node.name: node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef)
        and any("jit" in ast.unparse(decorator) for decorator in node.decorator_list)
    }


def _header(path: Path) -> dict[str, str]:
    """Return the fields of the comments; a line that is indented more continues the one before."""
    fields: dict[str, str] = {}
    for line in path.read_text().splitlines():
        if not line.startswith("# "):
            break
        key, colon, text = line[2:].partition(": ")
        if colon and key in KEYS:
            fields[key] = text.strip()
        elif fields:
            fields[list(fields)[-1]] += f" {line[2:].strip()}"
    return fields
