"""Prints what completes commands and their options in bash and zsh."""

from __future__ import annotations

from argparse import Namespace

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
    cases = "\n".join(f'    {name}) offered="{" ".join(each)}" ;;' for name, each in words.items())
    script = _BASH.format(cases=cases, commands=" ".join(words))
    # zsh reads bash's own form once it is told to.
    head = "autoload -U +X bashcompinit && bashcompinit\n"
    say(script if arguments.shell == "bash" else f"{head}{script}")
    return OK
