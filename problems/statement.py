"""List a problem's statement for a prompt: what is given, what to return, which rules hold.

A statement is prose in its problem's file. Its sentences stay as they are, and in their order
within each list. Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

LEAST_SENTENCES = 4
# A full stop that ends a sentence. One may begin with the name of an argument.
_END = re.compile(r"(?<=[\w)\]*'`])\. (?=[A-Z(]|[a-z]\w*(?:, | is | are | holds | has | and |\[))")
# What goes on with the sentence before it.
_GOES_ON = re.compile(
    r"(?:Its?|Theirs?|They|Them|This|These|That|Those|Then|Otherwise|Both|Each|Here|For it|Such"
    r"|On every other|On any other|In either|So|Else|Of these|Of each|Of it|If so|If it)\b"
)
_RULE = re.compile(
    r"(?:Products|Sums|Scores|Everything|Every step|Compute in|Gradients|All ranks agree"
    r"|Ranks agree|Ranks have|All tensors|The arguments?|Both arguments|No argument|A quotient"
    r"|Raise|Counts|Sizes|Shapes|Lengths|The result is|All arguments|The routing|A blend's)\b"
    r"|.*\b(?:may be any|may differ|may vary|must stay|may change)\b"
)
_RETURN = re.compile(r"\b(?:Return|return|returns|is returned|are returned)\b")
HEADINGS = ("Given", "Return", "Rules")


def listed(statement: str) -> str:
    """Return a statement as three lists, or as it is if it is short or returns nothing."""
    parts: dict[str, list[str]] = {name: [] for name in HEADINGS}
    name = HEADINGS[0]
    for sentence in _sentences(statement):
        goes_on = _GOES_ON.match(sentence) and not _RULE.match(sentence)
        if not (parts[name] and goes_on):
            is_first = not any(parts.values())
            name = _part_of(sentence, is_first=is_first, has_returned=bool(parts["Return"]))
            parts[name].append(sentence)
        else:
            parts[name][-1] += f" {sentence}"
    count = sum(map(len, parts.values()))
    if count < LEAST_SENTENCES or not all(parts[name] for name in HEADINGS):
        return statement
    lists = ("\n".join([f"{name}:", "", *(f"- {one}" for one in parts[name])]) for name in HEADINGS)
    return "\n\n".join(lists)


def _part_of(sentence: str, *, is_first: bool, has_returned: bool) -> str:
    if _RETURN.search(sentence):
        return "Return"
    if _RULE.match(sentence) and not is_first:
        return "Rules"
    # What begins with a small letter begins with an argument, and says what that is.
    return "Return" if has_returned and not sentence[0].islower() else "Given"


def _sentences(text: str) -> Iterator[str]:
    at = 0
    for end in _END.finditer(text):
        # Within brackets a full stop ends nothing.
        if text.count("(", at, end.start()) == text.count(")", at, end.start()):
            yield text[at : end.start() + 1]
            at = end.end()
    yield text[at:]
