"""`quaid version`, `help` and `completion`."""

import platform
from collections.abc import Iterable
from contextlib import suppress
from typing import Annotated, Any

import typer

from quaid import __version__
from quaid.cli.app import COMMANDS, build_group
from quaid.cli.invocation import Invocation
from quaid.cli.main import invoke
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


def run_version(invocation: Invocation) -> None:
    """Print the version of Quaid.

    Examples:
      quaid version
      quaid version --json
    """
    python, system = platform.python_version(), platform.platform()
    invocation.respond(f"quaid {__version__}", version=__version__, python=python, system=system)


def run_help(
    invocation: Invocation,
    command: Annotated[list[str] | None, argument("COMMAND", "The command to explain.")] = None,
) -> int:
    """Explain a command, or list all of them.

    Examples:
      quaid help
      quaid help recall
    """
    # A command takes its actions as arguments, so its name alone is what has a help.
    return invoke([*(command or [])[:1], "--help"], invocation)


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
    elif hasattr(command, "list_commands"):
        choices = list(command.list_commands(None))
    elif command.name in _TAKES_REFERENCE:
        from quaid.index import documents

        invocation.quiet = True
        with suppress(QuaidError), invocation.open() as memory:
            # From the index as it is: a keystroke does not wait for a sync.
            return documents.list_names(memory.visible_index(), begun, MAX_NAMES)
        return []
    else:
        from quaid.agents.hosts import HOSTS  # imported only here: other keystrokes do not wait for it
        from quaid.config import list_settings
        from quaid.settings import Settings

        settings = [key for key, _ in list_settings(Settings())]
        known: dict[str, Iterable[str]] = {"help": COMMANDS, "completion": SCRIPTS, "config": settings}
        choices = list((known | dict.fromkeys(("install", "uninstall"), HOSTS)).get(command.name, ()))
    return sorted(choice for choice in choices if choice.startswith(begun))
