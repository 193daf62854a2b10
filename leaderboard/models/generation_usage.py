"""Stores what a harness tells of how kernels were made: usage, cost, transcripts."""

from __future__ import annotations

import gzip
import io

from django.db import models
from django.db.models import Q

from leaderboard.models.catalogue import Problem
from leaderboard.models.submissions import MAX_COST_USD, Kernel, Submission

MAX_COUNT = 10**12
MAX_WALL_S = 1e9
MAX_ENDED = 40
MAX_TRANSCRIPT_BYTES = 1 << 20
TOKENS = ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens")
COUNTS = (*TOKENS, "answers", "answers_without_usage", "judge_runs")
# What the steps of an attempt add up to, and so never falls from one to the next.
RISING = (*COUNTS, "cost_usd", "wall_s")


def _in_range(name: str, most: float) -> models.CheckConstraint:
    within = Q(**{name: None}) | Q(**{f"{name}__gte": 0, f"{name}__lte": most})
    return models.CheckConstraint(condition=within, name=f"making_{name}_in_range")


class Making(models.Model):
    """Records what an attempt had used when a step of it was done, as its harness says; None where
    it says nothing. `cached_tokens` are a part of the input, `reasoning_tokens` one of the output.
    Of `answers_without_usage` no tokens are counted. `ended` says why the attempt was over, on its
    last step."""

    kernel = models.OneToOneField(Kernel, models.PROTECT, primary_key=True, related_name="making")
    input_tokens = models.PositiveBigIntegerField(null=True)
    cached_tokens = models.PositiveBigIntegerField(null=True)
    output_tokens = models.PositiveBigIntegerField(null=True)
    reasoning_tokens = models.PositiveBigIntegerField(null=True)
    answers = models.PositiveBigIntegerField(null=True)
    answers_without_usage = models.PositiveBigIntegerField(null=True)
    judge_runs = models.PositiveBigIntegerField(null=True)
    cost_usd = models.FloatField(null=True)
    wall_s = models.FloatField(null=True)
    ended = models.CharField(max_length=MAX_ENDED, blank=True, default="")

    class Meta:
        constraints = (
            *(_in_range(name, MAX_COUNT) for name in COUNTS),
            _in_range("cost_usd", MAX_COST_USD),
            _in_range("wall_s", MAX_WALL_S),
        )

    def __str__(self) -> str:
        return f"making of kernel {self.kernel_id}"


class Transcript(models.Model):
    """Stores what was said in an attempt: JSON lines, packed by gzip as they came."""

    submission = models.ForeignKey(Submission, models.PROTECT, related_name="transcripts")
    problem = models.ForeignKey(Problem, models.PROTECT, related_name="+", db_index=False)
    attempt = models.PositiveSmallIntegerField()
    packed = models.BinaryField()
    size_bytes = models.PositiveIntegerField()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("submission", "problem", "attempt"), name="transcript_once"
            ),
            models.CheckConstraint(
                condition=Q(size_bytes__lte=MAX_TRANSCRIPT_BYTES), name="transcript_is_short"
            ),
        )

    def __str__(self) -> str:
        return f"transcript of {self.submission_id}, {self.problem_id}, attempt {self.attempt}"

    @property
    def text(self) -> str:
        """Return the lines; what is not UTF-8 is replaced."""
        return unpacked(bytes(self.packed), MAX_TRANSCRIPT_BYTES).decode(errors="replace")


def unpacked(data: bytes, most: int) -> bytes:
    """Return what gzip packed, of at most `most` bytes and one more, which says that there are
    more. Raises what gzip raises for anything else."""
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
        return packed.read(most + 1)
