"""The kernels in `misbehaving/` and `honest/`, here and in `gpu/`: the header of each says what the
judge must find."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluator.messages.job import (
    Backend,
    Device,
    Dtype,
    Job,
    Limits,
    Placement,
    Profile,
    limits_of,
)
from evaluator.messages.report import Report, Verdict

HERE = Path(__file__).parent
ON_GPUS = {"device": Device.CUDA, "dtype": Dtype.BFLOAT16, "size": "standard"}


class MalformedHeader(ValueError):
    """A kernel's header cannot be read; the message names the file, the line and the mend."""


@dataclass(frozen=True, kw_only=True)
class KernelFile:
    """A kernel and what is expected of its report.

    More than one verdict is allowed only where a race by nature decides between them. `purpose`
    says what the kernel tries; `cause`, `ranks`, `flags` and `log` must occur in the report.
    `at_least_us` bounds the time of a call, `speedup_below` the lower end of the speedup's
    interval, which a busy host does not move. One that is `timed` gets as far as the timed phase,
    which wants the processors for itself; what may pass always does. On GPUs an honest one is run
    after one that `threatens` the host. `like` names a kernel that tries the same in another way:
    `make test` judges that one, `make test-all` both.
    """

    path: Path
    purpose: str
    verdicts: frozenset[Verdict]
    problem: str = "allreduce"
    world_size: int = 2
    size: str = "tiny"
    backend: Backend = Backend.PYTORCH
    device: Device = Device.CPU
    placement: Placement = Placement.FULL
    dtype: Dtype = Dtype.FLOAT32
    profile: Profile = Profile.HARDENED
    trials: int = 6
    limits: Limits = field(default_factory=Limits)
    cause: str | None = None
    flags: frozenset[str] = frozenset()
    ranks: tuple[int, ...] = ()
    log: str | None = None
    at_least_us: float | None = None
    speedup_below: float | None = None
    slow: bool = False
    timed: bool = False
    threatens: bool = False
    like: str | None = None

    @property
    def only_passes(self) -> bool:
        """Whether nothing of its timing is expected."""
        bounds = self.at_least_us or self.speedup_below or "timing_mismatch" in self.flags
        may = {Verdict.OK, Verdict.RESOURCE_LIMIT}
        return Verdict.OK in self.verdicts and self.verdicts <= may and not bounds

    @property
    def gpus(self) -> int:
        """How many a kernel for GPUs takes."""
        return self.world_size if self.placement is Placement.FULL else 1

    @property
    def job(self) -> Job:
        return Job(
            problem=self.problem,
            source=self.path.read_text(),
            backend=self.backend,
            world_size=self.world_size,
            size=self.size,
            device=self.device,
            placement=self.placement,
            dtype=self.dtype,
            profile=self.profile,
            trials=self.trials,
            limits=self.limits,
        )

    def complaints(self, report: Report) -> list[str]:
        """How the report differs from what the header says; a time counts where there is one."""
        found = []
        if report.verdict not in self.verdicts:
            found.append(f"{report.verdict} instead of {' or '.join(sorted(self.verdicts))}")
        if self.cause not in (None, report.cause):
            found.append(f"cause {report.cause} instead of {self.cause}")
        if missing := self.flags - set(report.flags):
            found.append(f"without the flags {', '.join(sorted(missing))}")
        if self.ranks and report.ranks != self.ranks:
            found.append(f"names ranks {report.ranks} instead of {self.ranks}")
        if self.log is not None and not any(self.log in log.text for log in report.logs):
            found.append(f"no log says {self.log!r}")
        if report.timing is None:
            return found
        if report.timing.kernel_us < (self.at_least_us or 0):
            found.append(f"{report.timing.kernel_us:.1f} us, less than {self.at_least_us} us")
        if self.speedup_below is not None and report.timing.speedup_low >= self.speedup_below:
            found.append(f"{report.timing.speedup_low:.2f}x, not below {self.speedup_below}x")
        return found


def read(path: Path) -> KernelFile:
    """Read a kernel's header: the `# key: value` lines before its first other line."""
    header = _fields(path)
    purposes = [header.pop(key) for key in ("cheat", "shows") if key in header]
    if len(purposes) != 1 or "verdict" not in header:
        raise MalformedHeader(
            f"{path.name}: give one `# verdict: ...` and one of `# cheat: ...`, `# shows: ...`"
        )
    try:
        values: dict[str, Any] = {
            _NAMES.get(key, key): _READERS[key](text) for key, text in header.items()
        }
    except ValueError as error:
        raise MalformedHeader(f"{path.name}: {error}") from None
    is_full = values.get("placement", Placement.FULL) is Placement.FULL
    values.setdefault("timed", is_full and Verdict.OK in values["verdicts"])
    if path.parent.parent == HERE / "gpu":
        values = {**ON_GPUS, **values}
    usual = limits_of(values.get("device", Device.CPU))
    values["limits"] = dataclasses.replace(usual, **values.get("limits", {}))
    return KernelFile(path=path, purpose=purposes[0], **values)


def all_in(folder: str) -> list[KernelFile]:
    """Those of a folder, such as `honest` or `gpu/honest`."""
    return [read(path) for path in sorted((HERE / folder).glob("*.py"))]


def reference_source(name: str) -> str:
    """The text of a submission that is the reference of a problem, given by its dotted name."""
    return f"from problems.{name} import reference as solution\n"


def named(folder: str, name: str) -> KernelFile:
    return read(HERE / folder / f"{name}.py")


def _fields(path: Path) -> dict[str, str]:
    fields: dict[str, str] = {}
    for line in path.read_text().splitlines():
        if not line.startswith("# "):
            break
        key, colon, text = line[2:].partition(": ")
        if not colon or key in fields or key not in {*_READERS, "cheat", "shows"}:
            known = ", ".join(["cheat", "shows", *_READERS])
            raise MalformedHeader(
                f"{path.name}: `{line}` is not a line `# key: value` with a new key of: {known}"
            )
        fields[key] = text.strip()
    return fields


def _words(text: str) -> frozenset[str]:
    return frozenset(word.strip() for word in text.split(","))


def _verdicts(text: str) -> frozenset[Verdict]:
    return frozenset(Verdict(word) for word in _words(text))


def _limits(text: str) -> dict[str, float]:
    """What differs from the usual limits."""
    values: dict[str, float] = {}
    kinds = {field.name: field.type for field in dataclasses.fields(Limits)}
    for word in _words(text):
        name, _, number = word.partition("=")
        if name not in kinds:
            raise ValueError(f"there is no limit {name!r}; the limits are {', '.join(kinds)}")
        values[name] = float(number) if kinds[name] == "float" else int(number)
    return values


def _ranks(text: str) -> tuple[int, ...]:
    return tuple(sorted(int(word) for word in _words(text)))


def _yes(text: str) -> bool:
    if text != "yes":
        raise ValueError(f"write `yes` or leave the line out, not {text!r}")
    return True


def _host(text: str) -> bool:
    if text != "host":
        raise ValueError(f"only the `host` can be threatened, not {text!r}")
    return True


_NAMES = {"verdict": "verdicts"}
_READERS: dict[str, Callable[[str], object]] = {
    "verdict": _verdicts,
    "problem": str,
    "world_size": int,
    "size": str,
    "backend": Backend,
    "device": Device,
    "placement": Placement,
    "dtype": Dtype,
    "profile": Profile,
    "trials": int,
    "limits": _limits,
    "cause": str,
    "flags": _words,
    "ranks": _ranks,
    "log": str,
    "at_least_us": float,
    "speedup_below": float,
    "slow": _yes,
    "timed": _yes,
    "threatens": _host,
    "like": str,
}
