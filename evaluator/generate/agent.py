"""Tries an attempt with tools: the model writes, has judged, mends, until it or a limit says stop.

The loop knows no time and no chance: given the same answers and findings it does the same.
"""

from __future__ import annotations

from dataclasses import replace

from evaluator.generate.answers import calls_in
from evaluator.generate.attempt_loop import AttemptFailed, Course
from evaluator.generate.exchange import Message, Reply, ToolCall
from evaluator.generate.tools import DONE, result_of, tools_for
from evaluator.messages.answers import find_kernel

ANSWERS_A_STEP = 4  # judge, profile and read beside each write
MOST_REFUSALS = 2
MOST_IDLE = 3  # answers in a row that call nothing and hold no kernel
SAME_SOURCES = 3
DROPPED = "(dropped, as the conversation became too long: call the tool again)"
NUDGE = "Call a tool: write a kernel, or end with done."


def try_with_tools(course: Course) -> str:
    """Let the model work and return how the attempt ended.

    `done`: it said so. `steps`: the limit of revisions, or of answers, is reached. `stuck`: three
    revisions in a row are the same. `idle`: it calls nothing. `refused`: it refuses again and
    again. `context`: the conversation is too long, even without what can be dropped. `too_long`.
    """
    tools, idle, refusals = tools_for(course.task.is_judged, course.task.has_shell), 0, 0
    for _ in range(ANSWERS_A_STEP * course.task.most_steps):
        try:
            reply = course.ask(tools)
        except AttemptFailed as failure:
            if failure.why == "context" and _drop_results(course):
                continue
            return failure.why
        if reply.is_refused and not reply.calls:
            refusals += 1
            if refusals == MOST_REFUSALS:
                return "refused"
            course.say(NUDGE)
            continue
        written = () if reply.calls else calls_in(reply.text)
        idle = 0 if _act(course, reply, written) else idle + 1
        if ending := _ending(course, reply.calls or written, idle):
            return ending
    return "steps"


def _act(course: Course, reply: Reply, written: tuple[ToolCall, ...]) -> bool:
    """Do what an answer asks; return False if it asks nothing. Some servers pass calls on as text
    (`written`), and some models only write a kernel: it is kept and judged."""
    for call in reply.calls:
        course.say(result_of(call, course), call.id)
    for call in written:  # the server knows of no call that this would answer
        course.say(f"Result of {call.name}:\n\n{result_of(call, course)}")
    if reply.calls or written:
        return True
    is_cut = reply.finish == "length"
    source = find_kernel(reply.text, is_cut=is_cut)
    is_full = len(course.steps) >= course.task.most_steps
    if source is None or is_full:
        course.say("Your answer was cut off. " + NUDGE if is_cut else NUDGE)
        return False
    course.write(source)
    found = course.try_kernel(course.task.practice).text + "\n\n" if course.task.is_judged else ""
    course.say(f"Step {len(course.steps)} is written.\n\n{found}{NUDGE}")
    return True


def _ending(course: Course, calls: tuple[ToolCall, ...], idle: int) -> str | None:
    """Return how the attempt ends now, if it does."""
    if course.steps and any(call.name == DONE.name for call in calls):
        return "done"
    last = [step.digest for step in course.steps[-SAME_SOURCES:]]
    if len(last) == SAME_SOURCES and len(set(last)) == 1:
        return "stuck"
    if idle == MOST_IDLE:
        return "idle"
    return None


def _drop_results(course: Course) -> bool:
    """Put a note in place of half the results of tools and the writes they answer, oldest first;
    False where none is left. The statement and the last answer's results stay."""
    last = max((at for at, m in enumerate(course.messages) if m.role == "assistant"), default=0)
    droppable = [at for at, message in enumerate(course.messages[:last]) if _is_droppable(message)]
    for at in droppable[: (len(droppable) + 1) // 2]:
        message = course.messages[at]
        calls = tuple(replace(call, arguments="{}") for call in message.calls)
        text = DROPPED if message.role == "tool" else message.text
        course.messages[at] = replace(message, text=text, calls=calls)
    return bool(droppable)


def _is_droppable(message: Message) -> bool:
    if message.role == "tool":
        return message.text != DROPPED
    return any(call.arguments != "{}" for call in message.calls)
