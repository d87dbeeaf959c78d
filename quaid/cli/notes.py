"""`quaid get`, `forget`, `restore`, `link` and `note`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from quaid.cli.change_output import tell_written
from quaid.cli.invocation import Invocation, fields, render_json
from quaid.cli.note_output import render_note
from quaid.cli.reference import Reference, choosing
from quaid.cli.terminal import count, has_terminal, print_exactly
from quaid.errors import NoteNotFoundError, QuaidError
from quaid.index.views import NoteView

if TYPE_CHECKING:
    from quaid.index.documents import Document


def run_get(
    ctx: typer.Context,
    ref: Reference,
    raw: Annotated[bool, typer.Option("--raw", help="Print the bytes of the file at a terminal too.")] = False,
) -> None:
    """Print a note as it is, or a part of it: a turn of a conversation, a section.

    In a pipe and with --raw these are the bytes of the file. A terminal shows them below a line that says what the note
    is.

    Examples:
      quaid get 7k3qd
      quaid get "[[Maya Chen]]"
      quaid get "[[Garden#Tomatoes]]"
      quaid get 20-1402-2f1c9a#t3
    """
    invocation: Invocation = ctx.obj
    with invocation.open() as memory:
        view = choosing(invocation, memory, ref, memory.get)
    if invocation.as_json:
        # Not `answer`: what the note says is given as it is.
        print(render_json(_note_shape(view)))
    elif raw or not has_terminal():
        print_exactly(view.source)
    else:
        print(render_note(view))


def run_forget(ctx: typer.Context, ref: Reference) -> None:
    """Remove a fact, an entity, a conversation or one turn from the memory; git keeps it.

    Your own notes are never removed. Where several notes fit they are listed, and a terminal asks which one is meant.

    Examples:
      quaid forget 7k3qd
      quaid forget "Maya takes oat milk in her coffee"
      quaid forget 20-1402-2f1c9a#t3
    """
    invocation: Invocation = ctx.obj
    with invocation.open() as memory:
        tell_written(invocation, choosing(invocation, memory, ref, memory.forget))


def run_restore(ctx: typer.Context, ref: Reference) -> None:
    """Bring back what was forgotten, as it was. Give the whole id; `quaid log` has it.

    Examples:
      quaid restore 01kagx3m7r9q2d5w8t0v7k3qd
    """
    with ctx.obj.open() as memory:
        try:
            tell_written(ctx.obj, choosing(ctx.obj, memory, ref, memory.restore))
        except NoteNotFoundError as error:
            raise _NothingForgottenError(ref) from error


def run_link(
    ctx: typer.Context,
    subject: Annotated[str, typer.Argument(metavar="SUBJECT", help="A person or a thing.")],
    relation: Annotated[
        str,
        typer.Argument(
            metavar="RELATION", help="The relation, such as works_at; an inverse such as employs is turned round."
        ),
    ],
    target: Annotated[str, typer.Argument(metavar="OBJECT", help="The person or thing it is related to.")],
) -> None:
    """Connect two things in the graph; notes for them are made on the way.

    Examples:
      quaid link "Maya Chen" works_at Acme
      quaid link Biscuit pet_of "Maya Chen"
    """
    with ctx.obj.open() as memory:
        tell_written(ctx.obj, memory.link(subject, relation, target))


def run_note(
    ctx: typer.Context,
    text: Annotated[list[str], typer.Argument(metavar="TEXT", help="One line.")],
    session: Annotated[
        str | None, typer.Option(metavar="ID", help="Keep it for this session; the default is the next one.")
    ] = None,
) -> None:
    """Queue a line that is kept with the next conversation as a note to self.

    Examples:
      quaid note "call Maya back about the lease"
    """
    invocation: Invocation = ctx.obj
    with invocation.open() as memory:
        waiting = memory.note(" ".join(text), session)
    invocation.respond(f"Noted. {count(waiting, 'line')} waiting for the next quaid extract.", waiting=waiting)


def document_shape(document: Document) -> dict[str, object]:
    """A note's row without its row number, which means nothing outside of this index."""
    return {name: value for name, value in document._asdict().items() if name != "doc_id"}


def _note_shape(view: NoteView) -> dict[str, object]:
    return {
        "note": document_shape(view.document),
        **fields(view, "turn", "text", "markdown"),
        "heading": view.heading or None,
        "edges": list(view.edges),
    }


class _NothingForgottenError(QuaidError):
    """`restore` needs what `forget` printed."""

    code = "not_found"

    def __init__(self, reference: str) -> None:
        super().__init__(
            f"Nothing that was forgotten has the id {reference!r}. Find the whole id with: quaid log --json"
        )
