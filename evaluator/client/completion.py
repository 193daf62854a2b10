"""Prints what completes commands and their options in bash, zsh and fish."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence

from .arguments import options, parser
from .console import say
from .failures import OK

_BASH = """\
# eval "$(pkb completion bash)"
_pkb() {{
    local offered
    case "${{COMP_WORDS[1]}}" in
{cases}
    *) offered="{commands}" ;;
    esac
    [ "$COMP_CWORD" -eq 1 ] && offered="{commands}"
    COMPREPLY=($(compgen -W "$offered" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _pkb pkb"""


def completion(arguments: Namespace) -> int:
    """Print the script of a shell."""
    words = options(parser())
    say(_fish(words) if arguments.shell == "fish" else _bash(words, arguments.shell))
    return OK


def _bash(words: Mapping[str, Sequence[str]], shell: str) -> str:
    cases = "\n".join(f'    {name}) offered="{" ".join(each)}" ;;' for name, each in words.items())
    script = _BASH.format(cases=cases, commands=" ".join(words))
    # zsh reads bash's own form once it is told to.
    head = "autoload -U +X bashcompinit && bashcompinit\n"
    return script if shell == "bash" else f"{head}{script}"


def _fish(words: Mapping[str, Sequence[str]]) -> str:
    lines = [
        "# pkb completion fish | source",
        f"complete -c pkb -n __fish_use_subcommand -a '{' '.join(words)}'",
    ]
    for name, each in words.items():
        lines.append(
            f"complete -c pkb -n '__fish_seen_subcommand_from {name}' -a '{' '.join(each)}'"
        )
    return "\n".join(lines)
