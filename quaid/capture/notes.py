"""The notes of a vault for agents and the programs that build on them: list, read, create, edit, rename, delete.

An agent changes the notes that say `written_by: agent`, as those that it creates do, and no others. Each change is one
commit without secrets. `expected` is the hash of the version that the caller has read: where the note is another one by
now, nothing is written.
"""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from quaid import errors
from quaid.capture.writer import WritePlan, Writer, WriteResult, make_key, naming_broken_note
from quaid.model import Edit, Kind, Message
from quaid.open_vault import OpenVault
from quaid.recall.visibility import may_see
from quaid.redaction import admit, locate
from quaid.text.invisible import whole
from quaid.vault import files, transaction
from quaid.vault.agent_notes import change_text, is_obeyed, with_mark, without_mark
from quaid.vault.layout import is_agents, is_conflict_copy, is_note_path, is_vault_path
from quaid.vault.notes import StoredNote, newline_of

MAX_BYTES = 20_000_000
"""Of one note: longer ones could not be searched, and git would hold each version."""
_PRIVATE = re.compile(r"<private\b.*?(?:</private>|\Z)", re.DOTALL | re.IGNORECASE)
Plan = Callable[..., WritePlan]


class Notes:
    """The notes of one vault, as `memory.notes` and, awaited, as `AsyncMemory.notes`. A path is relative to the vault.

    Raises: NoteNotFoundError; NoteConflictError: it is not the version that was `expected`; NotOursError,
    NoteLockedError: it is for its owner to change; NoteBrokenError: it is no UTF-8; BadInputError: no note of an agent
    can have this path or text, or there is one already.
    """

    def __init__(self, vault: OpenVault) -> None:
        self._vault = vault
        self._root: Path = vault.root

    def list(self, folder: str = "") -> list[str]:
        """Return the paths of all notes in a folder and the folders in it, by default of the whole vault."""
        prefix = f"{folder.strip('/')}/" if folder.strip("/") else ""
        listed = sorted(path for path in files.list_notes(self._root).notes if path.startswith(prefix))
        return [path for path in listed if self._find(path) is not None]

    def read(self, path: str) -> StoredNote:
        """Return a note: `shown` is its text, `hash` its version. NoteNotFoundError."""
        note = self._find(path)
        if note is None:
            raise errors.NoteNotFoundError(path)
        return note

    def create(self, path: str, text: str) -> WriteResult:
        """Write a new note."""
        return self._write(self._plan_write, path, whole(text), None, True)

    def write(self, path: str, text: str, *, expected: str | None = None) -> WriteResult:
        """Replace the text of a note, or create it."""
        return self._write(self._plan_write, path, whole(text), expected, False)

    def edit(self, path: str, old: str, new: str, *, expected: str | None = None) -> WriteResult:
        """Replace `old`, which must be in the note exactly once, by `new`."""
        return self._write(self._plan_edit, path, whole(old), whole(new), expected)

    def insert(self, path: str, line: int, text: str, *, expected: str | None = None) -> WriteResult:
        """Insert `text` as lines behind the line of this number; 0 is before the first."""
        return self._write(self._plan_insert, path, line, whole(text), expected)

    def rename(self, path: str, to: str, *, expected: str | None = None) -> WriteResult:
        """Give a note, or a folder with all its notes, another path."""
        return self._write(self._plan_rename, path.rstrip("/"), to.rstrip("/"), expected)

    def delete(self, path: str, *, expected: str | None = None) -> WriteResult:
        """Delete a note, or a folder with all its notes. git keeps them."""
        return self._write(self._plan_delete, path.rstrip("/"), expected)

    # -- plans ---------------------------------------------------------------------------------------------------

    def _write(self, plan: Plan, *given: str | int | None) -> WriteResult:
        return Writer(self._vault).write(make_key(plan.__name__, *given), plan, *given).written

    def _plan_write(self, path: str, text: str, expected: str | None, is_new: bool) -> WritePlan:
        if is_new or (self._find(path) is None and expected is None):
            self._check_new(path)
            return self._plan_text(path, None, text)
        return self._plan_text(path, self._own(path, expected), text)

    def _plan_edit(self, path: str, old: str, new: str, expected: str | None) -> WritePlan:
        note = self._own(path, expected)
        before = _text_of(note)
        found = before.count(old) if old else 0
        if found != 1:
            problem = "does not have that text" if not found else f"has that text {found} times"
            raise errors.BadInputError(f"{path} {problem}: nothing was changed. Give a text that is in it once.")
        return self._plan_text(path, note, before.replace(old, new))

    def _plan_insert(self, path: str, line: int, text: str, expected: str | None) -> WritePlan:
        note = self._own(path, expected)
        before = _text_of(note)
        newline, lines = newline_of(before), before.split("\n")
        lines += [] if lines.pop() == "" else [before.rpartition("\n")[2]]
        if not 0 <= line <= len(lines):
            step = f"Give the number of a line from 0 to {len(lines)}"
            raise errors.BadInputError(f"{path} has no line {line}: nothing was changed. {step}.")
        lines.insert(line, newline.join(text.rstrip("\n").split("\n")) + newline[:-1])
        return self._plan_text(path, note, "\n".join(lines) + "\n")

    def _plan_rename(self, path: str, to: str, expected: str | None) -> WritePlan:
        edits: list[Edit] = []
        for note in self._own_below(path, expected):
            target = to + note.rel_path[len(path) :]
            self._check_new(target)
            edits += [Edit(note.rel_path, note.data, None), Edit(target, None, note.data)]
        return WritePlan(WriteResult(to, to, "renamed", path), tuple(edits), Message(f"rename: {path} to {to}"))

    def _plan_delete(self, path: str, expected: str | None) -> WritePlan:
        found = list(self._own_below(path, expected))
        for note in found:  # git has it still, with what its owner has not committed
            transaction.commit_unsaved(self._vault.git, note.rel_path, note.data, Message(f"edit: {note.rel_path}"))
        edits = tuple(Edit(note.rel_path, note.data, None) for note in found)
        return WritePlan(WriteResult(path, path, "deleted"), edits, Message(f"delete: {path}"))

    def _plan_text(self, path: str, note: StoredNote | None, text: str) -> WritePlan:
        """Plan the note at `path` with another text, without the secrets that are new in it."""
        self._check_path(path)
        before = _text_of(note) if note else ""
        found = admit(text)
        if note and _secrets(text) <= _secrets(before):  # its owner has written them there
            found = found._replace(text=text, redacted=())
        data = (change_text(note.data.decode(), found.text) if note else with_mark(found.text)).encode()
        if len(data) > MAX_BYTES or not self._may_see(path, data):
            problem = f"cannot be a text of more than {MAX_BYTES:,} bytes, or one that hides from its owner"
            raise errors.BadInputError(f"{path} {problem}: nothing was written. Give another text.")
        outcome, verb = ("edited", "edit") if note else ("created", "create")
        written = WriteResult(path, path, outcome, redacted=found.redacted)
        if note is not None and data == note.data:
            return WritePlan(replace(written, outcome="unchanged"))
        return WritePlan(written, (Edit(path, note.data if note else None, data),), Message(f"{verb}: {path}"))

    # -- what is there -------------------------------------------------------------------------------------------

    def _find(self, path: str) -> StoredNote | None:
        """Return the note at `path` if it is there and no one else keeps it private."""
        if not (is_note_path(path) and files.is_file_in(self._root, path)) or is_conflict_copy(path):
            return None
        data = files.read_note(self._root, path)
        return StoredNote(path, data) if data is not None and self._may_see(path, data) else None

    def _may_see(self, path: str, data: bytes) -> bool:
        return may_see(path, data, self._vault.owners, self._vault.layout)

    def _own(self, path: str, expected: str | None) -> StoredNote:
        """Return the note at `path`, which an agent has written."""
        note = self.read(path)
        if expected not in {None, note.hash}:
            raise errors.NoteConflictError(path)
        kind = self._vault.layout.kind_of(path, note.head.fields)
        if not is_agents(note.head.fields) or kind is Kind.CORE:
            if kind is Kind.NOTE:
                raise errors.NotOursError(path)
            step = "Replace or remove what it says with: quaid remember, quaid forget"
            raise errors.BadInputError(f"{path} is Quaid's own and no note of an agent: nothing was changed. {step}.")
        return note

    def _own_below(self, path: str, expected: str | None) -> Iterator[StoredNote]:
        """Yield the note at `path`, or all notes in that folder, which agents must have written."""
        folder = self._root / path
        if is_note_path(path) or not is_vault_path(path) or folder.is_symlink() or not folder.is_dir():
            yield self._own(path, expected)
            return
        for found in sorted(folder.rglob("*")):
            rel_path = found.relative_to(self._root).as_posix()
            if not found.is_dir() or found.is_symlink():
                yield self._own(rel_path, None)

    def _check_new(self, path: str) -> None:
        """Raise BadInputError if an agent cannot make a note of this path."""
        self._check_path(path)
        if os.path.lexists(self._root / path) or not files.can_hold(self._root, path):
            raise errors.BadInputError(f"{path} is taken or too long: nothing was written. Give another path.")

    def _check_path(self, path: str) -> None:
        """Raise BadInputError if agents may not write a note of this path."""
        layout = self._vault.layout
        is_quaids = layout.folder_kind(path) is not None and layout.project_of(path) is None
        is_note = is_note_path(path) and is_vault_path(path) and path.isprintable() and not is_conflict_copy(path)
        if not is_note or is_quaids or is_obeyed(path) or admit(path).redacted:
            raise errors.BadInputError(
                f"{path!r} is no place for a note of an agent: nothing was written. Give a path that ends in .md, in "
                "no hidden folder and none of Quaid's own, under a name that no program obeys and without a secret."
            )


def _text_of(note: StoredNote) -> str:
    with naming_broken_note(note.rel_path):
        return without_mark(note.data.decode("utf-8"))


def _secrets(text: str) -> set[str]:
    """Return what of a text no agent may add: its secrets and its private passages."""
    return {secret.text for secret in locate(text)} | set(_PRIVATE.findall(text))
