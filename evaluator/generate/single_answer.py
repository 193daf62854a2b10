"""Tries an attempt of one answer: zero-shot, one-shot, and each of repeated samples."""

from __future__ import annotations

from evaluator.generate.attempt_loop import AttemptFailed, Course
from evaluator.messages.answers import find_kernel

CUT_OFF = "length"


def try_once(course: Course) -> str:
    """Ask once, keep the kernel in the answer, and return how the attempt ended.

    `answered`: with a kernel. `cut_off`: at the limit of output, with or without one. `no_answer`:
    an answer that holds none. `refused`, `too_long`, `context`: no answer at all.
    """
    try:
        reply = course.ask()
    except AttemptFailed as failure:
        return failure.why
    if reply.is_refused:
        return "refused"
    source = find_kernel(reply.text, is_cut=reply.finish == CUT_OFF)
    if source is not None:
        course.write(source)
        if course.task.is_judged:
            course.try_kernel(course.task.practice)
    if reply.finish == CUT_OFF:
        return "cut_off"
    return "answered" if course.steps else "no_answer"
