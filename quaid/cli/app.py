"""The commands of `quaid` and the group that loads them one at a time.

Start-up is a feature: the table below is all that `quaid --help` needs, and a call imports the one module behind
its command. The options that every command shares are added here, so that no signature repeats them.
"""

from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from quaid import __version__
from quaid.cli.commands import make_command, share_options, typer_options

SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "Begin": {
        "init": ("init", "Make a folder a vault, or adopt a folder of notes."),
        "clone": ("remote", "Clone your vault from another machine, and trust it."),
        "trust": ("remote", "Let Quaid read a vault that was cloned, copied or moved here."),
        "demo": ("demo", "Try everything in a temporary vault."),
    },
    "Remember and recall": {
        "remember": ("notes", "Store a fact, or confirm the one that says the same."),
        "extract": ("extract", "Store a conversation and draw facts from it."),
        "analyze": ("extract", "Learn from a file: text, PDF, Office, EPUB, HTML."),
        "import": ("extract", "Import another memory or a folder of notes."),
        "export": ("extract", "Write the memory as JSON lines."),
        "recall": ("recall", "Answer a question from memory."),
        "search": ("recall", "Find notes by their words alone."),
        "list": ("listing", "List notes by kind, status, time, and what they are about."),
        "get": ("notes", "Print a note as it is, or a part of it."),
        "edit": ("editing", "Edit a note in your editor; what you save is a commit."),
        "open": ("editing", "Open a note in Obsidian, or in the program for its kind."),
        "forget": ("notes", "Remove a note from the memory; git keeps it."),
        "restore": ("notes", "Bring back what was forgotten."),
        "purge": ("purge", "Remove a note or a text from the history too, for good."),
        "link": ("notes", "Connect two things in the graph."),
        "note": ("notes", "Queue a line for the next conversation."),
    },
    "Look back": {
        "view": ("editing", "Look at the memory in your browser."),
        "log": ("history", "Show what changed and what it meant, commit by commit."),
        "diff": ("history", "Compare the memory at two commits or days: facts, and answers."),
        "undo": ("history", "Take back a change that Quaid made, and keep what came after."),
        "bisect": ("history", "Find the commit at which an answer was lost or gained."),
        "branch": ("history", "Keep another memory in a branch, compare and merge them."),
    },
    "Index": {
        "watch": ("sync", "Follow changes of the files until stopped."),
        "sync": ("sync", "Bring the index up to date with the files."),
        "reindex": ("sync", "Rebuild the index from the files."),
        "verify": ("sync", "Check the index against the files."),
        "conflicts": ("sync", "List the notes that a merge could not solve, and settle them."),
    },
    "Machines": {
        "remote": ("remote", "Show or change the repositories that this vault is exchanged with."),
        "push": ("remote", "Send what is new here to a remote."),
        "pull": ("remote", "Fetch what is new at a remote and merge it."),
    },
    "Tidy": {
        "janitor": ("janitor", "Review and merge facts; every decision is a commit that you can undo."),
    },
    "Projects": {
        "project": ("docs", "Projects, their source code and their documents."),
        "docs": ("docs", "Search and read documents, and see which are out of date."),
    },
    "Agents": {
        "install": ("install", "Install Quaid in the program that your agent runs in."),
        "uninstall": ("install", "Remove it again."),
        "mcp": ("mcp", "Serve the memory to agents."),
        "serve": ("serve", "Serve many vaults to agents over HTTP, for a team."),
        "context": ("context", "Print what an agent should know before it starts."),
        "hook": ("context", "Answer an event of a program that an agent runs in."),
    },
    "Look around": {
        "status": ("doctor", "Show how the vault is, and what needs attention."),
        "doctor": ("doctor", "Check everything Quaid needs on this machine."),
        "stats": ("stats", "Show what the memory is made of, in numbers."),
        "why": ("why", "Show where a memory comes from and how it has changed."),
        "audit": ("stats", "Audit the sources of your memories and list the weakly supported ones."),
        "eval": ("eval", "Replay questions and count the answers that are found, gained and lost."),
        "config": ("config", "Show or change settings."),
        "help": ("about", "Explain a command."),
        "version": ("about", "Print the version."),
        "completion": ("about", "Complete commands and names of notes in your shell."),
    },
}
"""Each command's module and its line in `quaid --help`, by the section it is listed in."""
COMMANDS = {name: entry for section in SECTIONS.values() for name, entry in section.items()}


class QuaidGroup(TyperGroup):
    """The root command: knows the names, loads the rest when called."""

    def list_commands(self, _: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"quaid.cli.{COMMANDS[cmd_name][0]}")
        return make_command(cmd_name, getattr(module, f"run_{cmd_name}"))

    def format_commands(self, _: Any, formatter: Any) -> None:
        width = max(map(len, COMMANDS))
        for title, entries in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), summary) for name, (_, summary) in entries.items()])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            close = get_close_matches(args[0], COMMANDS, n=1)
            ctx.fail(f"There is no command {args[0]!r}." + (f" Did you mean {close[0]}?" if close else ""))
        return super().resolve_command(ctx, args)


@cache
def build_group() -> Any:
    """The root command, ready to be invoked with an `Invocation` as its object."""
    root = typer.Typer(cls=QuaidGroup, subcommand_metavar="COMMAND …", **typer_options())
    root.callback(help=_root.__doc__)(_root)
    return share_options(typer.main.get_command(root))


def _print_version(value: bool) -> None:
    if value:
        print(f"quaid {__version__}")
        raise typer.Exit


def _root(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """An agent's memory as markdown notes in git.

    Answers go to stdout, remarks to stderr. The vault is --vault, else $QUAID_HOME, else the one around the
    working folder, else ~/quaid. Begin with: quaid demo
    """
