"""What can be done to a memory on its page. Each is a commit by the writer, the janitor or the timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quaid.capture.note_edit import MARKS
from quaid.errors import BadInputError
from quaid.web.answer import Form, go_to
from quaid.web.templating import memory_path

if TYPE_CHECKING:
    from starlette.requests import Request

    from quaid.capture.writer import WriteResult
    from quaid.memory import Memory


def forget(memory: Memory, _: Form, request: Request) -> str:
    """Take a memory, or a turn of a conversation, out of the vault; git keeps it.

    Raises:
        NotOursError, UncommittedError: the note is its owner's, or holds what git does not have.
    """
    view = memory.get(request.path_params["reference"])
    written = memory.forget(view.reference, by_owner=True)
    return go_to_note(written, view.document.id, "forgotten")


def restore(memory: Memory, _: Form, request: Request) -> str:
    """Bring back what was forgotten, or let a fact that was replaced hold again."""
    written = memory.restore(request.path_params["reference"], by_owner=True)
    return go_to_note(written, written.id, "restored")


def mark(memory: Memory, form: Form, request: Request) -> str:
    """Pin or verify a fact or a core note in its owner's name, or take that back.

    Raises:
        NotOursError, BadInputError: it is not one of them.
    """
    chosen = next((each for each in MARKS if each == form.get("mark")), None)
    if chosen is None:
        raise BadInputError(f"A memory can be {' or '.join(MARKS)}: nothing was changed.")
    is_set = form.get("value") == "on"
    written = memory.writer.mark(request.path_params["reference"], chosen, is_set=is_set)
    memory.sync()  # its file may say the same, and count as somebody else's no longer
    return go_to_note(written, written.id, chosen if is_set else f"un{chosen}")


def dispute(memory: Memory, form: Form, request: Request) -> str:
    """Ask in review/ whether a fact is to be forgotten that the reader says is wrong.

    Raises:
        NotDisputableError: it is not a fact that holds.
    """
    written = memory.janitor.dispute(request.path_params["reference"], form.get("why", ""))
    return go_to_note(written, written.id, "disputed")


def go_to_note(written: WriteResult, reference: str, said: str) -> str:
    """Return the way to the page of a note after it was written: what is said there, and the commit to undo."""
    if written.outcome == "unchanged":
        said = "unchanged"
    elif written.left:
        said = "left"
    return go_to(memory_path(reference), said, written.commit)
