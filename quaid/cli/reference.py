"""REF as it is typed: a path from the working folder is resolved, and a person chooses among several notes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from quaid.cli.invocation import Invocation
from quaid.errors import AmbiguousReferenceError

if TYPE_CHECKING:
    from quaid.memory import Memory

T = TypeVar("T")

Reference = Annotated[
    str,
    typer.Argument(
        metavar="REF",
        help="An id or part of one, a path, a name, [[Note#Heading]], the text of a fact, a turn (20-1402-2f1c9a#t3).",
    ),
]


def choosing(invocation: Invocation, memory: Memory, ref: str, act: Callable[[str], T]) -> T:
    """Return what `act` makes of `ref`; where several notes fit, a person at a terminal is asked which.

    Raises:
        AmbiguousReferenceError: several fit, and nobody is there to choose.
    """
    try:
        return act(_from_here(memory.root, ref))
    except AmbiguousReferenceError as error:
        if invocation.as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise
        return act(_choose(error))


def _choose(error: AmbiguousReferenceError) -> str:
    print(error, file=sys.stderr)
    number: int = typer.prompt(f"Which one (1 to {len(error.candidates)})", type=int, err=True)
    if not 1 <= number <= len(error.candidates):
        raise error
    chosen, _ = error.candidates[number - 1]
    return chosen


def _from_here(root: Path, ref: str) -> str:
    """Return the path in the vault of a file that is given from the working folder; any other reference as it is."""
    if not (ref.startswith(("/", "~", ".")) or ref.lower().endswith(".md")):
        return ref
    try:
        path = Path(ref).expanduser().resolve()
        return path.relative_to(root.resolve()).as_posix() if path.is_file() else ref
    except (OSError, ValueError, RuntimeError):
        return ref
