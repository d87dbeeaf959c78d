"""The meaning of changed files: facts learned, changed, superseded, restored and forgotten, and other notes alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import count
from typing import TYPE_CHECKING, Literal

from quaid.janitor.vetoes import is_counter
from quaid.model import Kind, Note, note_name
from quaid.sync.embedding import Progress, ignore_progress
from quaid.vault import differences, layout, notes
from quaid.vault.layout import Layout

if TYPE_CHECKING:
    from quaid.history.vault_history import VaultCommit

How = Literal["learned", "added", "changed", "superseded", "restored", "moved", "forgotten", "removed"]
FILE = "file"
"""The kind of what is no note."""
MaySee = Callable[[str, bytes], bool]


Span = tuple[str | None, str | None]
"""The ids of what a file held before and after, None for no file."""


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """The change of one note. Facts are learned and forgotten, all else is added and removed.

    `text` is the statement of a fact, its last one if forgotten, or the name of another note; `was` its statement
    before it was reworded. `by` names the note that replaces a superseded one. `details` are sentences about the rest.
    """

    how: How
    kind: str
    id: str
    path: str
    text: str
    was: str | None = None
    by: str | None = None
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _State:
    """One version of a file; `note` is None for what is no note."""

    path: str
    data: bytes
    note: Note | None

    @property
    def identity(self) -> str | bytes:
        """What tells that a file was moved: the note's id, else its content."""
        has_id = self.note is not None and self.note.id != self.path
        return self.note.id if self.note is not None and has_id else self.data


def list_spans(logged: VaultCommit) -> dict[str, Span]:
    """Return path -> span of each file that a commit changed; one that was moved is gone from its old path."""
    spans: dict[str, Span] = {}
    for change in logged.changes:
        if change.old_path:
            spans[change.old_path] = change.befores[0], None
        spans[change.path] = None if change.old_path else change.befores[0], change.after
    return spans


def list_blobs(*spans: Mapping[str, Span]) -> set[str]:
    """Return the ids of all that the files of `spans` held."""
    return {blob for those in spans for span in those.values() for blob in span if blob}


def read_sides(spans: Mapping[str, Span], blobs: Mapping[str, bytes]) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Return path -> bytes of the files before, and of those after, as far as `blobs` has them."""
    before = {path: blobs[old] for path, (old, _) in spans.items() if old and old in blobs}
    return before, {path: blobs[new] for path, (_, new) in spans.items() if new and new in blobs}


def compare(
    before: Mapping[str, bytes],
    after: Mapping[str, bytes],
    place: Layout,
    may_see: MaySee,
    progress: Progress = ignore_progress,
) -> list[MemoryChange]:
    """Return what the memory gained, lost and changed from the files `before` to those `after`, path -> bytes: the ones
    that differ. Notes that their reader may not see are left out, and so are the counters of recalls.
    """
    done, total = count(1), len(before) + len(after)

    def read(path: str, data: bytes) -> _State:
        progress("Comparing notes", next(done), total)
        return _State(path, data, notes.parse_note(path, data, place=place) if layout.is_note_path(path) else None)

    sides = [
        {path: read(path, data) for path, data in side.items() if not is_counter(path)} for side in (before, after)
    ]
    hidden = {path for side in sides for path, state in side.items() if not may_see(path, state.data)}
    old, new = ({path: state for path, state in side.items() if path not in hidden} for side in sides)
    moved_to = {state.identity: path for path, state in new.items() if path not in old}
    sources = {
        moved_to[state.identity]: path for path, state in old.items() if path not in new and state.identity in moved_to
    }
    gone = [path for path in old if path not in new and path not in sources.values()]
    pairs = [(old.get(sources.get(path, path)), state) for path, state in new.items()]
    found = [_change(was, now) for was, now in (*pairs, *((old[path], None) for path in gone))]
    return sorted(found, key=lambda change: change.path)


def _change(before: _State | None, after: _State | None) -> MemoryChange:
    state = after or before
    assert state is not None
    kind = state.note.kind if state.note else Kind.NOTE
    how, by = _judge(before, after, is_fact=kind is Kind.FACT)
    texts = [_say(side) if side else None for side in (before, after)]
    details = differences.describe(kind, [before.data], after.data) if before and after else []
    return MemoryChange(
        how,
        kind.value if state.note else FILE,
        state.note.id if state.note else state.path,
        state.path,
        texts[1] or texts[0] or "",
        texts[0] if before and after and kind is Kind.FACT and texts[0] != texts[1] else None,
        by,
        tuple(sentence for sentence in details if kind is not Kind.FACT or not sentence.startswith("“")),
    )


def _judge(before: _State | None, after: _State | None, *, is_fact: bool) -> tuple[How, str | None]:
    """What became of a note, and the name of the one that replaces it."""
    if before is None or after is None:
        made: How = "learned" if is_fact else "added"
        gone: How = "forgotten" if is_fact else "removed"
        return made if before is None else gone, None
    if before.note and after.note and bool(before.note.superseded_by) != bool(after.note.superseded_by):
        return "superseded" if after.note.superseded_by else "restored", after.note.superseded_by
    return "moved" if before.data == after.data else "changed", None


def _say(state: _State) -> str:
    """A fact as a sentence, any other note as it is called."""
    if state.note is None or state.note.kind not in {Kind.FACT, Kind.ENTITY, Kind.EPISODE}:
        return state.path
    return " ".join(state.note.text.split()) if state.note.kind is Kind.FACT else note_name(state.path)


def diff_words(before: str, after: str) -> Iterator[tuple[str, str]]:
    """Yield (`=`, `-` or `+`, words) of how `before` becomes `after`, word by word."""
    old, new = (re.findall(r"\s*\S+", text) for text in (before, after))
    matcher = SequenceMatcher(None, [word.strip() for word in old], [word.strip() for word in new], autojunk=False)
    for tag, *span in matcher.get_opcodes():
        taken, brought = "".join(old[span[0] : span[1]]), "".join(new[span[2] : span[3]])
        marked = (("=", brought),) if tag == "equal" else (("-", taken), ("+", brought))
        yield from ((mark, words) for mark, words in marked if words)
