"""What an owner may do to a note: the marks that protect it from change, and edits that leave it readable."""

from shlex import quote
from typing import Literal, get_args

from quaid.errors import QuaidError
from quaid.model import Kind, Note, note_name

Mark = Literal["pinned", "verified"]
MARKS: tuple[Mark, ...] = get_args(Mark)
MARKABLE = (Kind.FACT, Kind.CORE)
VERBS: dict[Mark, str] = {"pinned": "pin", "verified": "verify"}


class EmptyNoteError(QuaidError):
    """An edit that leaves nothing of a note."""

    code = "edit"

    def __init__(self, rel_path: str, *, is_own: bool) -> None:
        removal = f"Remove it with: quaid forget {quote(note_name(rel_path))}"
        step = "To remove it, delete the file" if is_own else removal
        super().__init__(f"{rel_path} would be empty: nothing was changed. {step}")


def describe_new_problems(before: Note, after: Note) -> str | None:
    """Return a sentence about what cannot be read since the edit, None where all can."""
    rel_path = after.rel_path
    new = [problem for problem in after.problems if problem not in before.problems]
    if not new:
        return None
    return f"{rel_path} is kept as you wrote it, but {', and '.join(new)}. Repair it with: quaid edit {rel_path!r}"
