"""The commands of `quaid` and the group that loads them one at a time.

Start-up is a feature: the table below is all that `quaid --help` needs, and a call imports the one module behind
its command. The options that every command shares are added here, so that no signature repeats them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from quaid.cli.invocation import Invocation


class CommandEntry(NamedTuple):
    """The module of a command and what `quaid --help` says about it."""

    module: str
    summary: str


SECTIONS: dict[str, dict[str, CommandEntry]] = {
    "Begin": {
        "init": CommandEntry("init", "Make a folder a vault, or adopt a folder of notes."),
        "clone": CommandEntry("trust", "Clone your vault from another machine, and trust it."),
        "trust": CommandEntry("trust", "Let Quaid read a vault that was cloned, copied or moved here."),
        "demo": CommandEntry("demo", "Try everything in a temporary vault."),
    },
    "Remember and recall": {
        "remember": CommandEntry("remember", "Store a fact, or confirm the one that says the same."),
        "extract": CommandEntry("extract", "Store a conversation and draw facts from it."),
        "analyze": CommandEntry("analyze", "Learn from a file: text, markdown or PDF."),
        "import": CommandEntry("importing", "Import another memory or a folder of notes."),
        "export": CommandEntry("exporting", "Write the memory as JSON lines."),
        "recall": CommandEntry("recall", "Answer a question from memory."),
        "search": CommandEntry("recall", "Find notes by their words alone."),
        "list": CommandEntry("listing", "List notes by kind, status, time, and what they are about."),
        "get": CommandEntry("notes", "Print a note as it is, or a part of it."),
        "edit": CommandEntry("editing", "Edit a note in your editor; what you save is a commit."),
        "open": CommandEntry("editing", "Open a note in Obsidian, or in the program for its kind."),
        "forget": CommandEntry("notes", "Remove a note from the memory; git keeps it."),
        "restore": CommandEntry("notes", "Bring back what was forgotten."),
        "purge": CommandEntry("purge", "Remove a note or a text from the history too, for good."),
        "link": CommandEntry("notes", "Connect two things in the graph."),
        "note": CommandEntry("notes", "Queue a line for the next conversation."),
    },
    "Look back": {
        "view": CommandEntry("view", "Look at the memory in your browser."),
        "log": CommandEntry("log", "Show what changed and what it meant, commit by commit."),
        "diff": CommandEntry("diff", "Compare the memory at two commits or days: facts, and answers."),
        "undo": CommandEntry("undo", "Take back a change that Quaid made, and keep what came after."),
        "bisect": CommandEntry("bisect", "Find the commit at which an answer was lost or gained."),
        "branch": CommandEntry("branch", "Keep a memory beside this one, compare and merge them."),
    },
    "Index": {
        "watch": CommandEntry("watch", "Follow changes of the files until stopped."),
        "sync": CommandEntry("sync", "Bring the index up to date with the files."),
        "reindex": CommandEntry("sync", "Rebuild the index from the files."),
        "verify": CommandEntry("sync", "Check the index against the files."),
        "conflicts": CommandEntry("conflicts", "List the notes that a merge could not solve, and settle them."),
    },
    "Machines": {
        "remote": CommandEntry("remote", "Show or change the repositories that this vault is exchanged with."),
        "push": CommandEntry("remote", "Send what is new here to a remote."),
        "pull": CommandEntry("remote", "Fetch what is new at a remote and merge it."),
    },
    "Tidy": {
        "janitor": CommandEntry("janitor", "Review and merge facts; every decision is a commit that you can undo."),
    },
    "Projects": {
        "project": CommandEntry("project", "Projects, their source code and their documents."),
        "docs": CommandEntry("docs", "Search and read documents, and see which are out of date."),
    },
    "Agents": {
        "install": CommandEntry("install", "Install Quaid in the program that your agent runs in."),
        "uninstall": CommandEntry("install", "Remove it again."),
        "mcp": CommandEntry("mcp", "Serve the memory to agents."),
        "serve": CommandEntry("serve", "Serve many vaults to agents over HTTP, for a team."),
        "context": CommandEntry("context", "Print what an agent should know before it starts."),
        "hook": CommandEntry("hook", "Answer an event of a program that an agent runs in."),
    },
    "Look around": {
        "status": CommandEntry("status", "Show how the vault is, and what needs attention."),
        "doctor": CommandEntry("doctor", "Check everything Quaid needs on this machine."),
        "stats": CommandEntry("stats", "Show what the memory is made of, in numbers."),
        "why": CommandEntry("why", "Show where a memory comes from and how it has changed."),
        "audit": CommandEntry("audit", "Show where the memories came from, and which rest on little."),
        "eval": CommandEntry("eval", "Replay questions and count the answers that are found, gained and lost."),
        "config": CommandEntry("config", "Show or change settings."),
        "help": CommandEntry("about", "Explain a command."),
        "version": CommandEntry("about", "Print the version."),
        "completion": CommandEntry("completion", "Complete commands and names of notes in your shell."),
    },
}
COMMANDS = {name: entry for section in SECTIONS.values() for name, entry in section.items()}


class QuaidGroup(TyperGroup):
    """The root command: knows the names, loads the rest when called."""

    def list_commands(self, _: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _: Any, cmd_name: str) -> Any:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        return _make_command(cmd_name, getattr(import_module(f"quaid.cli.{entry.module}"), f"run_{cmd_name}"))

    def format_commands(self, _: Any, formatter: Any) -> None:
        width = max(map(len, COMMANDS))
        for title, entries in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), entry.summary) for name, entry in entries.items()])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            meant = get_close_matches(args[0], COMMANDS, n=1)
            ctx.fail(f"There is no command {args[0]!r}." + (f" Did you mean {meant[0]}?" if meant else ""))
        return super().resolve_command(ctx, args)


@cache
def _make_command(cmd_name: str, function: Callable[..., Any]) -> Any:
    # A paragraph that begins with \b is printed as it is, not wrapped.
    text = inspect.cleandoc(function.__doc__ or "").replace("\\b\n", "\b\n").replace("Examples:\n", "\b\nExamples:\n")
    one = _new_typer()
    # A negative number is a value, though it looks like an option.
    one.command(cmd_name, help=text, context_settings={"ignore_unknown_options": cmd_name == "config"})(function)
    return _with_shared_options(typer.main.get_command(one))


@cache
def build_group() -> Any:
    """The root command, ready to be invoked with an `Invocation` as its object."""
    root = _new_typer(cls=QuaidGroup, subcommand_metavar="COMMAND …")
    root.callback(help=_root.__doc__)(_root)
    group = typer.main.get_command(root)
    return _with_shared_options(group)


def _print_version(value: bool) -> None:
    if value:
        from quaid import __version__

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


def _new_typer(**options: Any) -> typer.Typer:
    names = {"help_option_names": ["-h", "--help"]}
    return typer.Typer(
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings=names,
        **options,
    )


def _shared(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Answer in JSON (docs/cli.md has the shapes).")] = False,
    vaults: Annotated[
        list[Path] | None,
        typer.Option("--vault", metavar="PATH", help="The vault to use; recall, search and mcp take several."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only, no remarks.")] = False,
) -> None:
    """Never called: its options are lent to every command."""


def _with_shared_options(command: Any) -> Any:
    lender = _new_typer()
    lender.command("shared")(_shared)
    for option in typer.main.get_command(lender).params:
        option.expose_value = False
        option.callback = _keep
        command.params.append(option)
    return command


def _keep(ctx: Any, option: Any, value: Any) -> None:
    """Given before or after the command's name, the option counts; where it was not given it says nothing."""
    invocation = ctx.find_object(Invocation)
    if invocation is not None and value:
        setattr(invocation, option.name, value)
