"""Rules out what constants keep from running: branches of Python, and of the preprocessor in the
C++ that a source's strings hold."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from enum import Enum, auto

from .source_text import Cut, cut, tokens

_LITERAL = r"True|False|None|\d{1,9}|\"[^\"\\\n]{0,40}\"|'[^'\\\n]{0,40}'"
_TYPED = r"[ \t]*+(?::[ \t]*+\w++[ \t]*+)?"
_CONSTANT = re.compile(rf"([A-Za-z_]\w*+){_TYPED}=[ \t]*+({_LITERAL})\s*")
_BOUND = re.compile(
    rf"\b([A-Za-z_]\w*+){_TYPED}(?:[-+*/%&|^@:]|//|<<|>>)?=(?!=)"
    r"|\b(?:for|as|import|global)[ \t]++([A-Za-z_]\w*+)"
)
_TEST = re.compile(r"(if|elif|while)\b([^:\n]{1,200}):([^\n]*)\n?|(else)[ \t]*:([^\n]*)\n?")
_COMPARED = re.compile(rf"(\w+) ?([!=]=) ?({_LITERAL})")
_NAME = re.compile(r"[A-Za-z_]\w*+")

_DIRECTIVE = re.compile(r"^[ \t]*+#[ \t]*+(ifdef|ifndef|if|elif|else|endif)\b([^\n]*)\n?", re.M)
_DEFINED = re.compile(r"#[ \t]*+define[ \t]++(\w++)(?:[ \t]++(\d{1,9})\b)?|-D[ \t]?(\w++)")
# Nothing defines these where NVIDIA's GPUs are, and a compiler or torch these.
_OF_AMD = re.compile(r"\w*ROCM\w*|_*HIP\w*|_*AMD\w*|\w*_HIP_\w*")
_OF_CUDA = frozenset(
    {"__CUDA_ARCH__", "__CUDACC__", "__NVCC__", "__cplusplus", "TORCH_EXTENSION_NAME"}
)

Atom = Callable[[str], bool | None]
Macros = Mapping[str, int | None]


def without_dead_branches(code: str) -> str:
    """Return code, without comments and messages, that has only the branches which count.

    Of two ways under a macro that the source does not define neither does.
    """
    lines, cuts, macros, begin = [], list[Cut](), _macros(code), 0
    for token in tokens(code):
        if token.kind == "text":
            cuts += _hidden(token.match["text"], token.match.start("text"), macros)
        elif token.kind == "end" and token.depth == 0:
            lines.append((begin, token.match.end()))
            begin = token.match.end()
    lines.append((begin, len(code)))
    return cut(code, [*cuts, *_dead(code, lines)])


def _dead(code: str, lines: list[tuple[int, int]]) -> Iterator[Cut]:
    """Yield the blocks of Python that do not run, and the tests that hold without asking."""
    values = _constants(code, lines)
    above: int | None = None  # deeper lines are dead
    chains: list[tuple[int, bool]] = []  # the column of each `if`, and whether it went some way
    for begin, end in lines:
        text = code[begin:end].lstrip()
        column = end - begin - len(text)
        if not text or (above is not None and column > above):
            yield begin, end, ""
            continue
        above = None
        while chains and chains[-1][0] > column:
            chains.pop()
        is_taken = bool(chains) and chains[-1] == (column, True)
        if chains and chains[-1][0] == column:
            chains.pop()
        if head := _TEST.fullmatch(text):
            verdict = False if is_taken and head[1] not in ("if", "while") else None
            if head[1] and verdict is None:
                verdict = _decided(head[2], lambda atom: _python_atom(atom, values))
            is_chain = head[1] in ("if", "elif")
            chains += [(column, (is_taken and head[1] == "elif") or verdict is True)] * is_chain
            if verdict is False:
                above = column
                yield begin + column + head.start(3 if head[1] else 5), end, ""
            elif verdict and any(values.get(name) for name in _NAME.findall(head[2])):
                yield begin + column + head.start(2), begin + column + head.end(2), " True"


def _constants(code: str, lines: list[tuple[int, int]]) -> dict[str, object]:
    """Return the names that a module gives a literal, and nothing else anywhere."""
    bound = Counter(name or other for name, other in _BOUND.findall(code))
    found = (_CONSTANT.fullmatch(code, begin, end) for begin, end in lines)
    return {one[1]: _value(one[2]) for one in found if one and bound[one[1]] == 1}


def _value(literal: str) -> object:
    named: dict[str, object] = {"True": True, "False": False, "None": None}
    return (
        named[literal]
        if literal in named
        else literal[1:-1]
        if literal[0] in "\"'"
        else int(literal)
    )


def _python_atom(text: str, values: Mapping[str, object]) -> bool | None:
    if compared := _COMPARED.fullmatch(text):
        name, operator, literal = compared.groups()
        is_equal = values[name] == _value(literal) if name in values else None
        return is_equal if is_equal is None else is_equal == (operator == "==")
    if re.fullmatch(_LITERAL, text):
        return bool(_value(text))
    return bool(values[text]) if text in values else None


def _decided(condition: str, atom: Atom) -> bool | None:
    """Return True if a condition holds; None where its atoms do not say, or it has brackets."""
    plain = condition.strip()
    if plain.startswith("(") and plain.find(")") == len(plain) - 1:
        plain = plain[1:-1]
    if re.search(r"[()\[\]{}]", plain):
        return None
    ways = [_all(re.split(r"\band\b", way), atom) for way in re.split(r"\bor\b", plain)]
    return True if True in ways else None if None in ways else False


def _all(parts: list[str], atom: Atom) -> bool | None:
    found = []
    for part in parts:
        words = part.split()
        negated = 0
        while words[negated : negated + 1] == ["not"]:
            negated += 1
        value = atom(" ".join(words[negated:]))
        found.append(value if value is None else value ^ (negated % 2 == 1))
    return False if False in found else None if None in found else True


class _Branch(Enum):
    """Says what is known of a branch of the preprocessor."""

    TAKEN = auto()
    NOT_YET = auto()
    PASSED = auto()  # an earlier one was taken
    OPEN = auto()  # macros of the source's own say which
    WANTED = auto()  # others do

    @property
    def counts(self) -> bool:
        return self in (_Branch.TAKEN, _Branch.OPEN)


_AFTER = {_Branch.TAKEN: _Branch.PASSED, _Branch.NOT_YET: _Branch.TAKEN}  # else the same


def _hidden(text: str, begin: int, macros: Macros) -> Iterator[Cut]:
    """Yield the branches of a string's C++ that do not count."""
    branches: list[_Branch] = []
    hiding = 0  # how many of them do not count
    since = 0
    for directive in _DIRECTIVE.finditer(text):
        if hiding:
            yield begin + since, begin + directive.start(), ""
        since, word = directive.end(), directive[1]
        last = None if word.startswith("if") or not branches else branches.pop()
        hiding -= last is not None and not last.counts
        if word.startswith("if"):
            branches.append(_branch(word, directive[2], macros))
        elif last is not None and word != "endif":
            is_asked = word == "elif" and last is _Branch.NOT_YET
            asked = _branch("if", directive[2], macros) if is_asked else None
            branches.append(asked or _AFTER.get(last, last))
        else:
            continue
        hiding += not branches[-1].counts
    if hiding:
        yield begin + since, begin + len(text), ""


def _branch(word: str, condition: str, macros: Macros) -> _Branch:
    if word != "if":
        condition = ("defined " if word == "ifdef" else "!defined ") + condition.strip()
    condition = re.sub(r"\bdefined\s*\(\s*(\w+)\s*\)", r"defined \1", condition[:400])
    names = set(_NAME.findall(condition)) - {"defined"}
    plain = re.sub(r"!(?!=)", " not ", condition.replace("||", " or ").replace("&&", " and "))
    verdict = _decided(plain, lambda atom: _cpp_atom(atom, macros))
    if verdict is None:
        return _Branch.OPEN if names <= macros.keys() | _OF_CUDA else _Branch.WANTED
    return _Branch.TAKEN if verdict else _Branch.NOT_YET


def _cpp_atom(text: str, macros: Macros) -> bool | None:
    name = text.removeprefix("defined ")
    if name not in macros and _OF_AMD.fullmatch(name):
        return False
    value = int(text) if re.fullmatch(r"\d{1,9}", text) else macros.get(text)
    return None if value is None else value != 0


def _macros(code: str) -> dict[str, int | None]:
    """Return the macros that a source defines, those of one known number with that."""
    found: dict[str, int | None] = {}
    for name, number, flag in _DEFINED.findall(code):
        is_new = name and name not in found
        found[name or flag] = int(number) if is_new and number else None
    return found
