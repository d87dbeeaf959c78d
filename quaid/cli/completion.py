"""`quaid completion`: what a shell may put behind the words typed so far."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quaid.cli.invocation import Invocation, check_one_of
from quaid.errors import QuaidError

if TYPE_CHECKING:
    from quaid.memory import Memory

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
    ctx: typer.Context,
    shell: Annotated[str, typer.Argument(metavar="SHELL", help=f"{', '.join(SCRIPTS)}.")],
    words: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
) -> None:
    """Print the script with which a shell completes commands, options and names of notes.

    Examples:
      eval "$(quaid completion bash)"      # in ~/.bashrc; zsh alike
      quaid completion fish | source       # in ~/.config/fish/config.fish
    """
    invocation: Invocation = ctx.obj
    if shell == "words":
        print("\n".join(_complete(invocation, words or [""])))
        return
    check_one_of("SHELL", [shell], tuple(SCRIPTS))
    print(SCRIPTS[shell], end="")


def _complete(invocation: Invocation, words: list[str]) -> list[str]:
    """Return what may stand for the last of `words`."""
    from quaid.cli.app import COMMANDS, build_group

    *before, begun = words
    group: Any = build_group()
    named = [word for word in before if not word.startswith("-")]
    if not named:
        return _starting(begun, _options(group) if begun.startswith("-") else COMMANDS)
    command: Any = group.get_command(None, named[0])
    if command is None:
        return []
    if begun.startswith("-"):
        return _starting(begun, _options(command))
    if named[0] == "help":
        return _starting(begun, COMMANDS)
    if named[0] in _TAKES_REFERENCE and len(named) == 1:
        return _names(invocation, begun)
    return _starting(begun, _actions(named[0])) if len(named) == 1 else []


def _starting(begun: str, words: Iterable[str]) -> list[str]:
    return sorted(word for word in words if word.startswith(begun))


def _options(command: Any) -> list[str]:
    return [name for param in command.params for name in param.opts if name.startswith("--") and not param.hidden]


def _actions(name: str) -> list[str]:
    """Return what a command takes for its first argument, as far as that is one of a few words."""
    if name == "config":
        from quaid.config import list_settings
        from quaid.settings import Settings

        return [key for key, _ in list_settings(Settings())]
    if name in {"install", "uninstall"}:
        from quaid.agents.hosts import HOSTS

        return list(HOSTS)
    if name == "completion":
        return list(SCRIPTS)
    from importlib import import_module

    from quaid.cli.app import COMMANDS

    module = import_module(f"quaid.cli.{COMMANDS[name].module}")
    return list(getattr(module, "ACTIONS", ()))


def _names(invocation: Invocation, begun: str) -> list[str]:
    """Return names of notes that begin so, from the index as it is: nobody waits for a sync at a keystroke."""
    invocation.quiet = True
    try:
        with invocation.open() as memory:
            return _read_names(memory, begun)
    except QuaidError:
        return []


def _read_names(memory: Memory, begun: str) -> list[str]:
    from quaid.index import documents

    return documents.list_names(memory.visible_index(), begun, MAX_NAMES)
