"""Edits by the owner: of a whole note, and the marks that protect a note from change."""

from __future__ import annotations

from shlex import quote
from typing import Literal, get_args

from quaid.errors import BadInputError, NoteChangedError, NotOursError, QuaidError
from quaid.history.merge import merge_lines
from quaid.index.documents import Document
from quaid.model import Edit, Kind, Note, note_name
from quaid.vault import frontmatter, notes
from quaid.vault.layout import Layout

Mark = Literal["pinned", "verified"]
MARKS: tuple[Mark, ...] = get_args(Mark)
MARKABLE = (Kind.FACT, Kind.CORE)
_VERBS: dict[Mark, str] = {"pinned": "pin", "verified": "verify"}


class EmptyNoteError(QuaidError):
    """An edit that leaves nothing of a note."""

    code = "edit"

    def __init__(self, rel_path: str, *, is_own: bool) -> None:
        removal = f"Remove it with: quaid forget {quote(note_name(rel_path))}"
        step = "To remove it, delete the file" if is_own else removal
        super().__init__(f"{rel_path} would be empty: nothing was changed. {step}")


def merge_edit(rel_path: str, before: bytes, now: bytes, after: bytes, place: Layout) -> bytes:
    """Return `now` with the changes from `before` to `after`.

    Raises:
        EmptyNoteError: nothing is left.
        NoteChangedError: the same lines were changed meanwhile.
    """
    if not after.strip():
        raise EmptyNoteError(rel_path, is_own=notes.parse_note(rel_path, now, place=place).kind is Kind.NOTE)
    merged = after if now == before else merge_lines(before, now, after)
    if merged is None:
        raise NoteChangedError(rel_path)
    return merged


def describe_new_problems(before: Note, after: Note) -> str | None:
    """Return a sentence about what cannot be read since the edit, None where all can."""
    rel_path = after.rel_path
    new = [problem for problem in after.problems if problem not in before.problems]
    if not new:
        return None
    return f"{rel_path} is kept as you wrote it, but {', and '.join(new)}. Repair it with: quaid edit {rel_path!r}"


def check_markable(document: Document) -> None:
    """Refuse a note that cannot be pinned or verified.

    Raises:
        NotOursError, BadInputError
    """
    if document.kind == Kind.NOTE:
        raise NotOursError(document.path)
    if document.kind not in MARKABLE:
        raise BadInputError(f"{document.path} is not a fact: only facts and core notes are pinned or verified.")


def plan_mark(rel_path: str, data: bytes, mark: Mark, place: Layout, *, is_set: bool) -> Edit:
    """Return the edit that sets or removes a mark; nothing else of the note changes.

    Raises:
        FrontmatterBrokenError, UnicodeDecodeError: the note cannot be edited safely.
    """
    if getattr(notes.parse_note(rel_path, data, place=place), mark) == is_set:
        return Edit(rel_path, data, data)
    text = frontmatter.set_fields(data.decode("utf-8"), {str(mark): True if is_set else None})
    return Edit(rel_path, data, text.encode())


def name_marking(mark: Mark, *, is_set: bool) -> str:
    """Return the verb for setting or removing a mark: pin, unpin."""
    return f"{'' if is_set else 'un'}{_VERBS[mark]}"
