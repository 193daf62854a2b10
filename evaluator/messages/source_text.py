"""Reads the text of a submission: Python that may hold C++ and CUDA, and need not parse.

It goes token by token, not by Python's own parser: what it finds is the same under every version of
Python, and takes time linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from .source_files import python_pieces

# Whatever a quote begins also ends where there is no second one, and nothing is looked at twice.
_LONG = r"\"\"\"(?:[^\"\\]++|\\[\s\S]|\"(?!\"\"))*+(?:\"\"\"|\\?\Z)"
_SHORT = r"\"(?:[^\"\\\n]++|\\[\s\S])*+\"?"
_LONGS, _SHORTS = (f"{one}|{one.replace(chr(34), chr(39))}" for one in (_LONG, _SHORT))
_ALONE = r"(?P<word>\w++)|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<end>\n)"
PYTHON = re.compile(
    rf"(?P<comment>#[^\n]*+)|(?P<continued>\\\n)|[rRbBuUfF]{{0,2}}(?:(?P<text>{_LONGS})"
    rf"|(?P<line>{_SHORTS}))|{_ALONE}|(?P<other>[^\w#\"'()\[\]{{}}\n\\]++|\\)"
)
_CPP = re.compile(
    r"(?P<comment>//[^\n]*+|/\*[\s\S]*?(?:\*/|\Z))"
    r"|(?P<raw>R\"(?P<mark>[^()\s\\\"]{0,16})\([\s\S]*?(?:\)(?P=mark)\"|\Z))"
    rf"|(?P<line>{_SHORT})|(?P<char>'(?:\\.|[^'\\\n]){{1,8}}')"
    rf"|{_ALONE}|(?P<other>\\[\s\S]|[^\w()\[\]{{}}\n\\/\"']++|[\s\S])"
)
# Calls whose strings are for people, by the last part of their names.
_SAYS = re.compile(
    r"print|f?printf|puts|perror|warn(?:ing|_once)?|filterwarnings|info|debug|error|critical"
    r"|exception|log|(?:static_)?assert|AT_ERROR|TORCH_(?:CHECK|WARN|INTERNAL_ASSERT)\w*"
    r"|\w*(?:Error|Exception|Warning)|(?:runtime|logic|domain|range)_error|invalid_argument"
)
_SENTENCE = re.compile(r"(?=(?:[^ ]++ ){2})(?!.*(?:^| )-)[^;{}\[\]%#=\\<>$/|&*@^~\n]*+")
_CALL = re.compile(r"\w\(")
_FIELD = re.compile(r"\{[^{}\n]*+\}")

Cut = tuple[int, int, str]  # from, to, and what is put there
IsMessage = Callable[[str, bool], bool]  # of a string's text, and whether a call says it


class Token(NamedTuple):
    """Holds a token with how deep in brackets it is, and whether it belongs to a message."""

    kind: str
    match: re.Match[str]
    depth: int
    is_said: bool


def without_comments(source: str) -> str:
    """Return Python without comments and docstrings; triple-quoted text also without C's comments.

    Lines keep their numbers. It need not parse.
    """
    return _without_words(source, lambda text, is_said: False)


def without_messages(source: str) -> str:
    """Return a source also without the strings that are for people: what it raises, prints, warns
    of and logs, and plain sentences."""
    return _without_words(source, lambda text, is_said: is_said or _is_sentence(text))


def without_sentences(source: str) -> str:
    """Return a source also without those messages that are plain sentences and cannot be code."""
    return _without_words(source, lambda text, is_said: is_said and _is_sentence(text))


def _is_sentence(text: str) -> bool:
    return _SENTENCE.fullmatch(text) is not None and _CALL.search(text) is None


def tokens(text: str, language: re.Pattern[str] = PYTHON) -> Iterator[Token]:
    """Yield the tokens of a text. A message is what such a call holds, what follows `raise` or the
    comma of an `assert`, and what goes into a stream."""
    inside: list[bool] = []
    before, keyword, is_raised = "", "", False
    for match in language.finditer(text):
        kind = str(match.lastgroup)
        is_said = is_raised or (bool(inside) and inside[-1])
        streamed = kind == "line" and before.rstrip().endswith("<<")
        yield Token(kind, match, len(inside), is_said or streamed)
        if kind == "open":
            inside.append(is_said or _SAYS.fullmatch(before) is not None)
        elif kind == "close" and inside:
            inside.pop()
        elif kind == "word" and not inside and match[0] in ("raise", "assert"):
            keyword = match[0]
        elif kind == "end" and not inside:
            keyword = ""
        has_comma = kind == "other" and "," in match[0] and not inside
        is_raised = bool(keyword) and (is_raised or keyword == "raise" or has_comma)
        before = match[0] if kind in ("word", "other") else ""


@dataclass(kw_only=True)
class _Reading:
    """Collects cuts, and of the present line its strings and whether it has anything else."""

    is_message: IsMessage
    has_docstrings: bool
    cuts: list[Cut] = field(default_factory=list)
    strings: list[re.Match[str]] = field(default_factory=list)
    has_code: bool = False

    def end_line(self) -> None:
        """Take out the strings of a line that has nothing else."""
        if self.has_docstrings and not self.has_code:
            self.cuts += [(one.start(), one.end(), "") for one in self.strings]
        self.has_code, self.strings = False, []

    def add_string(self, token: Token) -> None:
        """Take a string out, or parts of it."""
        match, kind = token.match, token.kind
        is_formatted = (
            "{" in match[0] and "f" in match[0][: match.start(kind) - match.start()].lower()
        )
        self.has_code |= is_formatted
        self.strings.append(match)
        if self.is_message(match[kind].strip("\"'"), token.is_said):
            fields = "".join(_FIELD.findall(match[0])) if is_formatted else ""
            self.cuts.append((match.start(), match.end(), f'"{fields}"'))
        elif kind == "text":
            self.cuts += _cuts_of_cpp(match[kind], match.start(kind), self.is_message)


def _without_words(source: str, is_message: IsMessage) -> str:
    return "".join(_piece_without(piece, is_message) for piece in python_pieces(source))


def _piece_without(source: str, is_message: IsMessage) -> str:
    # Python ends a line, and a comment, at either.
    source = source.replace("\r\n", "\n").replace("\r", "\n")
    reading = _Reading(is_message=is_message, has_docstrings="__doc__" not in source)
    for token in tokens(source):
        if token.kind == "comment":
            reading.cuts.append((*token.match.span(), ""))
        elif token.kind in ("text", "line"):
            reading.add_string(token)
        elif token.kind == "end" and token.depth == 0:
            reading.end_line()
        elif token.kind not in ("end", "continued"):
            reading.has_code |= not token.match[0].isspace()
    reading.end_line()
    return cut(source, reading.cuts)


def _cuts_of_cpp(text: str, begin: int, is_message: IsMessage) -> list[Cut]:
    found: list[Cut] = []
    for token in tokens(text, _CPP):
        start, end = (begin + at for at in token.match.span())
        if token.kind == "comment":
            found.append((start, end, ""))
        elif token.kind == "line" and is_message(token.match[0].strip('"'), token.is_said):
            found.append((start, end, '""'))
    return found


def cut(text: str, cuts: list[Cut]) -> str:
    """Return a text without its cuts, all of its lines kept."""
    parts, at = [], 0
    for begin, end, by in sorted(cuts, key=lambda one: (one[0], -one[1])):
        if begin >= at:
            parts += [text[at:begin], by, "\n" * text.count("\n", begin, end)]
            at = end
    return "".join([*parts, text[at:]])
