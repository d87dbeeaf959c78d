"""What several commands share in their command lines: kinds of options, references, days, and checks of values."""

import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from quaid.cli.invocation import Invocation
from quaid.errors import AmbiguousReferenceError, UsageError
from quaid.memory import Memory
from quaid.text.dates import parse_day, parse_period

T = TypeVar("T")


def option(metavar: str, text: str, *names: str, **settings: Any) -> Any:
    """Return an option with a value that the help calls `metavar`. Without `names` it has its parameter's name."""
    return typer.Option(*names, metavar=metavar, help=text, **settings)


def flag(text: str, *names: str) -> Any:
    """Return an option that is given or not."""
    return typer.Option(*names, help=text)


def argument(metavar: str, text: str) -> Any:
    """Return an argument that the help calls `metavar`."""
    return typer.Argument(metavar=metavar, help=text)


DryRun = Annotated[bool, flag("Show what would be done; change nothing.", "--dry-run")]
Yes = Annotated[bool, flag("Ask nothing.", "--yes", "-y")]
Reference = Annotated[
    str,
    argument(
        "REF",
        "An id or part of one, a path, a name, [[Note#Heading]], the text of a fact, a turn (20-1402-2f1c9a#t3).",
    ),
]


def can_answer(invocation: Invocation) -> bool:
    """Return whether somebody sits at a terminal and wants to read questions."""
    return not (invocation.as_json or invocation.quiet) and sys.stdin.isatty() and sys.stderr.isatty()


def check_one_of(name: str, values: Iterable[str] | None, known: Sequence[str]) -> None:
    """Refuse a value of the option `--name`, or of the argument `NAME`, that is not known.

    Raises:
        UsageError
    """
    for value in values or ():
        if value not in known:
            what = name if name.isupper() else f"--{name}"
            raise UsageError(f"{what} is {value!r}, must be one of {', '.join(known)}.")


def choosing(invocation: Invocation, memory: Memory, ref: str, act: Callable[[str], T]) -> T:
    """Return the result of `act` for `ref`, in which a path from the working folder is resolved. Where several notes
    fit, a person at a terminal chooses.

    Raises:
        AmbiguousReferenceError: several fit, and nobody is there to choose.
    """
    if ref.startswith(("/", "~", ".")) or ref.lower().endswith(".md"):
        with suppress(OSError, ValueError, RuntimeError):  # it is no path
            path = Path(ref).expanduser().resolve()
            ref = path.relative_to(memory.root.resolve()).as_posix() if path.is_file() else ref
    try:
        return act(ref)
    except AmbiguousReferenceError as error:
        if invocation.as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise
        print(error, file=sys.stderr)
        number: int = typer.prompt(f"Which one (1 to {len(error.candidates)})", type=int, err=True)
        if not 1 <= number <= len(error.candidates):
            raise
        return act(error.candidates[number - 1][0])


def parse_option_day(name: str, text: str | None, now: datetime, *, end: bool) -> date | None:
    """Return the first, or with `end` the last, day of a typed date; None where the option was not given.

    Raises:
        UsageError: it is not a date.
    """
    if text is None:
        return None
    try:
        return parse_day(text, now, end=end)
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from error


def parse_option_moment(name: str, text: str | None, now: datetime) -> datetime | None:
    """Return a moment such as `2026-11-20T14:30`, else the beginning of a day; without offset, of the zone of `now`.

    Raises:
        UsageError: it is neither.
    """
    bound = parse_period((name, ""), text, None, now)[0]
    if bound is None or isinstance(bound, datetime):
        return bound
    return datetime(bound.year, bound.month, bound.day).astimezone()


def require_installation() -> None:
    """Refuse to have others start this Quaid if it is in a cache that may be emptied, such as that of uvx."""
    if any((folder / "CACHEDIR.TAG").is_file() for folder in Path(sys.prefix).parents):
        raise UsageError("uvx runs Quaid from a cache that may be emptied. Install it first: uv tool install quaid")
