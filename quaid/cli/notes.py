"""`quaid get`, `forget`, `restore`, `link` and `note`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from quaid.cli.change_output import tell_written
from quaid.cli.invocation import Invocation
from quaid.cli.terminal import count, paragraphs, print_exactly, section, styled
from quaid.errors import NoteNotFoundError, QuaidError
from quaid.index.views import NoteView
from quaid.vault import files

if TYPE_CHECKING:
    from quaid.index.documents import Document

Reference = Annotated[
    str, typer.Argument(metavar="REF", help="An id or part of one, a path, a name, or a turn (20-1402-2f1c9a#t3).")
]


def run_get(
    ctx: typer.Context,
    ref: Reference,
    raw: Annotated[bool, typer.Option("--raw", help="Print the file as it is, with its frontmatter.")] = False,
) -> None:
    """Print a note, or one turn of a conversation, as text.

    Examples:
      quaid get 7k3qd
      quaid get "Maya Chen" --raw
      quaid get 20-1402-2f1c9a#t3
    """
    invocation: Invocation = ctx.obj
    with invocation.open() as memory:
        view = memory.get(ref)
        data = files.read_file(memory.root / view.document.path) if raw and view.turn is None else None
    if data is not None and not invocation.as_json:
        print_exactly(data)
        return
    shape = {"note": document_shape(view.document), "turn": view.turn, "text": view.text, "edges": list(view.edges)}
    if data is not None:
        shape["raw"] = data.decode("utf-8", "replace")
    invocation.tell(lambda: render_note(view), **shape)


def run_forget(ctx: typer.Context, ref: Reference) -> None:
    """Remove a fact, an entity, a conversation or one turn from the memory; git keeps it.

    Your own notes are never removed.

    Examples:
      quaid forget 7k3qd
      quaid forget 20-1402-2f1c9a#t3
    """
    with ctx.obj.open() as memory:
        tell_written(ctx.obj, memory.forget(ref))


def run_restore(ctx: typer.Context, ref: Reference) -> None:
    """Bring back what was forgotten, as it was. Give the whole id; `quaid log` has it.

    Examples:
      quaid restore 01kagx3m7r9q2d5w8t0v7k3qd
    """
    with ctx.obj.open() as memory:
        try:
            tell_written(ctx.obj, memory.restore(ref))
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
    invocation.tell(lambda: f"Noted. {count(waiting, 'line')} waiting for the next quaid extract.", waiting=waiting)


def document_shape(document: Document) -> dict[str, object]:
    """A note's row without its row number, which means nothing outside of this index."""
    return {name: value for name, value in document._asdict().items() if name != "doc_id"}


class _NothingForgottenError(QuaidError):
    """`restore` needs what `forget` printed."""

    code = "not_found"

    def __init__(self, reference: str) -> None:
        super().__init__(
            f"Nothing that was forgotten has the id {reference!r}. Find the whole id with: quaid log --json"
        )


def render_note(view: NoteView) -> str:
    """A note with its head and its edges."""
    document = view.document
    facts = [document.type or document.kind, document.status, document.speaker and f"said by {document.speaker}"]
    facts += [document.created and document.created[:10], document.valid_until and f"until {document.valid_until[:10]}"]
    head = styled(document.path + (f"#t{view.turn}" if view.turn else ""), "bold")
    about = styled(" · ".join([str(fact) for fact in facts if fact] + [document.id]), "dim")
    edges = section("Edges", [(edge.subject, edge.relation, edge.object) for edge in view.edges])
    return paragraphs(f"{head}\n{about}", view.text, edges)
