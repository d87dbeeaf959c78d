"""`quaid completion`: the scripts for shells, and the completions of a command line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from quaid.cli.app import COMMANDS, build_group
from quaid.cli.invocation import Invocation
from quaid.cli.options import argument, check_one_of
from quaid.errors import QuaidError

SCRIPTS = {
    "bash": r"""# quaid in bash: put this line into ~/.bashrc
#   eval "$(quaid completion bash)"
_quaid() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        COMPREPLY+=("$(printf '%q' "$line")")
    done < <(quaid completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _quaid quaid
""",
    "zsh": r"""#compdef quaid
# quaid in zsh: put this line into ~/.zshrc, below compinit
#   eval "$(quaid completion zsh)"
_quaid() {
    local -a found
    found=("${(@f)$(quaid completion words -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
    [[ -n "${found[1]}" ]] && compadd -- "${found[@]}" || _files
}
compdef _quaid quaid
""",
    "fish": r"""# quaid in fish: put this line into ~/.config/fish/config.fish
#   quaid completion fish | source
complete -c quaid -a '(quaid completion words -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
""",
}
MAX_NAMES = 50
_TAKES_REFERENCE = frozenset({"get", "forget", "why", "edit", "open"})


def run_completion(
    invocation: Invocation,
    shell: Annotated[str, argument("SHELL", f"{', '.join(SCRIPTS)}.")],
    words: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
) -> None:
    """Print the script with which a shell completes commands, options and names of notes.

    Examples:
      eval "$(quaid completion bash)"      # in ~/.bashrc; zsh alike
      quaid completion fish | source       # in ~/.config/fish/config.fish
    """
    if shell == "words":
        print("\n".join(_complete(invocation, words or [""])))
        return
    check_one_of("SHELL", [shell], tuple(SCRIPTS))
    print(SCRIPTS[shell], end="")


def _complete(invocation: Invocation, words: list[str]) -> list[str]:
    """Return the completions of the last of `words`."""
    *before, begun = words
    command: Any = build_group()
    left = [word for word in before if not word.startswith("-")]
    while left and (found := getattr(command, "get_command", lambda *_: None)(None, left[0])):
        command = found
        left.pop(0)
    if begun.startswith("-"):
        options = [param for param in command.params if not param.hidden]
        choices = [name for param in options for name in param.opts if name.startswith("--")]
    elif left:
        return []  # the first argument is there already
    elif command.name in _TAKES_REFERENCE:
        return _find_names(invocation, begun)
    else:
        choices = _first_arguments(command)
    return sorted(choice for choice in choices if choice.startswith(begun))


def _first_arguments(command: Any) -> list[str]:
    if hasattr(command, "list_commands"):
        return list(command.list_commands(None))
    from quaid.agents.hosts import HOSTS  # imported only here: a keystroke should not wait for it
    from quaid.config import list_settings
    from quaid.settings import Settings

    if command.name == "config":
        return [key for key, _ in list_settings(Settings())]
    words: dict[str, Iterable[str]] = {"help": COMMANDS, "completion": SCRIPTS, "install": HOSTS, "uninstall": HOSTS}
    return list(words.get(command.name, ()))


def _find_names(invocation: Invocation, begun: str) -> list[str]:
    """Return names of notes that begin so, from the index as it is: a keystroke does not wait for a sync."""
    from quaid.index import documents

    invocation.quiet = True
    try:
        with invocation.open() as memory:
            return documents.list_names(memory.visible_index(), begun, MAX_NAMES)
    except QuaidError:
        return []
