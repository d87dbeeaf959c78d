"""Typer as Quaid uses it: commands that take an `Invocation`, commands with actions, and the shared options."""

import inspect
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperGroup

from quaid.cli.invocation import Invocation

Function = TypeVar("Function", bound=Callable[..., Any])


class ActionGroup(TyperGroup):
    """A command whose first word is an action. Options may come before it, and without it `default` runs."""

    default = ""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        takes_value = {
            option
            for command in self.commands.values()
            for parameter in command.params
            for option in parameter.opts
            if not getattr(parameter, "is_flag", True)
        }
        previous = ["", *args]
        words = [
            place for place, word in enumerate(args) if word in self.commands and previous[place] not in takes_value
        ]
        if words:
            place = words[0]
            args = [args[place], *args[:place], *args[place + 1 :]]
        elif args and not args[0].startswith("-"):
            ctx.fail(f"There is no action {args[0]!r}. Give one of {', '.join(self.commands)}.")
        elif not {"-h", "--help"}.intersection(args):
            if not self.default:
                ctx.fail(f"Which action? Give one of {', '.join(self.commands)}.")
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        rows = []
        for name, command in self.commands.items():
            pieces = [piece.strip("{}") for piece in command.collect_usage_pieces(ctx) if piece != "[OPTIONS]"]
            rows.append((" ".join([name, *pieces]), command.get_short_help_str(1_000)))
        with formatter.section("Actions"):
            formatter.write_dl(rows)


class Actions(typer.Typer):
    """A command with actions, such as `quaid janitor run`; `text` is its help."""

    def __init__(self, text: str, default: str = "") -> None:
        super().__init__(cls=ActionGroup, help=clean_help(text), subcommand_metavar="ACTION …", **typer_options())
        self.default = default

    def action(self, name: str) -> Callable[[Function], Function]:
        """Register a function as the action `name`."""

        def register(function: Function) -> Function:
            self.command(name, help=clean_help(function.__doc__ or ""))(take_invocation(function))
            return function

        return register


@cache
def make_command(name: str, target: Callable[..., Any] | Actions) -> Any:
    """Return the command of a function or of `Actions`, with the shared options."""
    if isinstance(target, Actions):
        group = typer.main.get_command(target)
        group.default = target.default  # type: ignore[attr-defined] # an ActionGroup
        return share_options(group)
    one = typer.Typer(**typer_options())
    # A negative number is a value, though it looks like an option.
    settings = {"ignore_unknown_options": name == "config"}
    one.command(name, help=clean_help(target.__doc__ or ""), context_settings=settings)(take_invocation(target))
    return share_options(typer.main.get_command(one))


def take_invocation(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function`, whose first parameter is an `Invocation`, as typer needs it: with a context instead."""
    signature = inspect.signature(function, eval_str=True)
    first, *others = signature.parameters.values()
    if first.annotation is typer.Context:
        return function

    @wraps(function)
    def run(ctx: typer.Context, **given: Any) -> Any:
        return function(ctx.obj, **given)

    parameters = [first.replace(name="ctx", annotation=typer.Context), *others]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined] # typer reads it
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def clean_help(text: str) -> str:
    r"""Return a docstring as typer's help. A paragraph that begins with \b is printed unwrapped."""
    return inspect.cleandoc(text).replace("\\b\n", "\b\n").replace("Examples:\n", "\b\nExamples:\n")


def typer_options() -> dict[str, Any]:
    """The options of every `typer.Typer` here."""
    names = {"help_option_names": ["-h", "--help"]}
    return {
        "add_completion": False,
        "rich_markup_mode": None,
        "pretty_exceptions_enable": False,
        "context_settings": names,
    }


def share_options(command: Any) -> Any:
    """Add the shared options to a command and to its actions, and return it."""

    def set_option(ctx: Any, option: Any, value: Any) -> None:
        # Wherever it was given, before or after the command; one that was not given changes nothing.
        invocation = ctx.find_object(Invocation)
        if invocation is not None and value:
            setattr(invocation, option.name, value)

    lender = typer.Typer(**typer_options())
    lender.command("shared")(_shared)
    for option in typer.main.get_command(lender).params:
        option.expose_value = False
        option.callback = set_option
        command.params.append(option)
    for action in getattr(command, "commands", {}).values():
        share_options(action)
    return command


def _shared(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Answer in JSON.")] = False,
    vaults: Annotated[
        list[Path] | None,
        typer.Option("--vault", metavar="PATH", help="The vault to use; recall, search and mcp take several."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only, no remarks.")] = False,
) -> None:
    """Never called: every command gets its options."""
