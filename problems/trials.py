"""Choose the inputs that kernels are judged on, a TrialSpec per set. Standard library only."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from problems.spec import Problem, Size

PROFILES = ("upstream", "hardened")
SCALES = (1.0, 0.125, 8.0)
SHIFTS = (0.0, 0.5)
PUBLISHED_SHAPES, HIDDEN_SHAPES = 4, 2  # of six trials in a row


@dataclass(frozen=True, kw_only=True)
class TrialSpec:
    """Describe one seeded set of inputs. `scale` and `shift` transform normal draws if hardened.

    `trial` is unique in a run. Options, ragged lengths, scale and mean follow from it, in `timed`
    calls as in correctness trials, so that no two calls of a run share them by their place. If
    `is_plain`, options are the first ones and lengths the published, which is what `cost` counts.
    """

    trial: int
    m: int
    n: int
    note: str
    scale: float = 1.0
    shift: float = 0.0
    timed: bool = False
    is_plain: bool = False

    @property
    def turn(self) -> int:
        """Return the number that options and ragged lengths depend on."""
        return 0 if self.is_plain else self.trial


def correctness_trials(
    problem: Problem, size: str, profile: str, count: int, secret: bytes
) -> tuple[TrialSpec, ...]:
    """Return the published shape first; `hardened` adds scales, shifted means and odd shapes.

    Raises ValueError for a size or profile that does not exist.
    """
    published = _published(problem, size)
    if profile not in PROFILES:
        raise ValueError(f"no profile is called {profile!r}: use {' or '.join(PROFILES)}")
    if profile == "upstream":
        return tuple(
            TrialSpec(trial=t, m=published.m, n=published.n, note="published generator")
            for t in range(count)
        )
    return tuple(_hardened_trial(problem, published, trial, secret) for trial in range(count))


def trials_before_timing(count: int) -> int:
    """Return how many of so many correctness trials come before the timed phase. The others, in a
    usual run those of hidden shapes, nobody sees before it is over."""
    return max(1, count - HIDDEN_SHAPES)


def timed_trial(problem: Problem, size: str, trial: int, secret: bytes) -> TrialSpec:
    """Return a timed call: the published shape, as its least cost is known, with a secret scale and
    mean. Give each call of a run another trial number, none that a correctness check used."""
    published = _published(problem, size)
    scale, shift = _scale_and_shift(secret, trial, problem.number, "timed")
    return TrialSpec(
        trial=trial,
        m=published.m,
        n=published.n,
        note="timed",
        scale=scale,
        shift=shift,
        timed=True,
    )


def plain_trial(problem: Problem, size: str) -> TrialSpec:
    """Return the call that `cost` counts: published shape and lengths, first options."""
    published = _published(problem, size)
    return TrialSpec(trial=0, m=published.m, n=published.n, note="plain", timed=True, is_plain=True)


def secret_turn(secret: bytes, options: int, position: int, *parts: object) -> int:
    """Return which of so many options comes at a position: each once in so many positions, the
    first, the next and so on, in an order that nobody without the secret can predict."""
    block, place = divmod(position, options)
    order = sorted(range(options), key=lambda option: secret_int(secret, *parts, block, option))
    return order[place]


def secret_int(secret: bytes, *parts: object) -> int:
    """Derive a 63-bit number from the parts that nobody without the secret can predict."""
    text = "/".join(str(part) for part in parts).encode()
    return int.from_bytes(hashlib.sha256(secret + b"/" + text).digest()[:8], "big") >> 1


def _published(problem: Problem, size: str) -> Size:
    if size not in problem.sizes:
        known = ", ".join(problem.sizes)
        raise ValueError(f"problem {problem.number} has no size {size!r}: use {known}")
    return problem.sizes[size]


def _hardened_trial(problem: Problem, published: Size, trial: int, secret: bytes) -> TrialSpec:
    m, n, shape = published.m, published.n, "published shape"
    if trial % (PUBLISHED_SHAPES + HIDDEN_SHAPES) >= PUBLISHED_SHAPES:
        m = _hidden_length(m, problem.m_step, secret, problem.number, trial, "m")
        n = _hidden_length(n, problem.n_step, secret, problem.number, trial, "n")
        shape = "hidden shape"
    scale, shift = _scale_and_shift(secret, trial, problem.number, "trial")
    note = f"{shape}, scale {scale:g}, mean {shift:g}"
    return TrialSpec(trial=trial, m=m, n=n, scale=scale, shift=shift, note=note)


def _scale_and_shift(secret: bytes, position: int, *parts: object) -> tuple[float, float]:
    """Choose each by itself, so that no one can be told from the other."""
    scale = secret_turn(secret, len(SCALES), position, *parts, "scale")
    shift = secret_turn(secret, len(SHIFTS), position, *parts, "shift")
    return SCALES[scale], SHIFTS[shift]


def _hidden_length(length: int, step: int | None, secret: bytes, *parts: object) -> int:
    """Choose an odd multiple of `step`, at least half of `length` and below it: buffers fit."""
    if step is None:
        return length
    top = (length - 1) // step
    bottom = max(1, length // (2 * step))
    if top <= bottom:
        return length
    drawn = bottom + secret_int(secret, *parts) % (top - bottom + 1)
    return step * (drawn if drawn % 2 else drawn - 1 if drawn > bottom else drawn + 1)
