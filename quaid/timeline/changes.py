"""The meaning of changed files: facts learned, changed, superseded, restored and forgotten, and other notes alike."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import count
from typing import Literal

from quaid.history.vault_history import VaultCommit
from quaid.model import Kind, Note, note_name
from quaid.sync.embedding import Progress, ignore_progress
from quaid.vault import differences, layout, notes
from quaid.vault.layout import Layout

How = Literal["learned", "added", "changed", "superseded", "restored", "moved", "forgotten", "removed"]
FILE = "file"
"""The kind of what is no note."""
Span = tuple[str | None, str | None]
"""The ids of what a file held before and after, None for no file."""
Versions = tuple[bytes | None, bytes | None]
"""What a file held before and after, None for no file."""
_Version = tuple[str, bytes, Note | None]
"""The path and bytes of a file, and the note that it is; None for what is no note."""


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
    hidden: Collection[str] = (),
    progress: Progress = ignore_progress,
) -> list[MemoryChange]:
    """Return what the memory gained, lost and changed from the files `before` to those `after`, path -> bytes: the ones
    that differ. The paths in `hidden` are left out.
    """
    done, total = count(1), len(before) + len(after)

    def read(path: str, data: bytes) -> _Version:
        progress("Comparing notes", next(done), total)
        return path, data, notes.parse_note(path, data, place=place) if layout.is_note_path(path) else None

    old, new = (
        {path: read(path, data) for path, data in side.items() if path not in hidden} for side in (before, after)
    )
    moved_to = {_identity(version): path for path, version in new.items() if path not in old}
    sources = {
        moved_to[_identity(version)]: path
        for path, version in old.items()
        if path not in new and _identity(version) in moved_to
    }
    gone = [path for path in old if path not in new and path not in sources.values()]
    pairs = [(old.get(sources.get(path, path)), version) for path, version in new.items()]
    found = [_compare_note(was, now) for was, now in (*pairs, *((old[path], None) for path in gone))]
    return sorted(found, key=lambda change: change.path)


def _identity(version: _Version) -> str | bytes:
    """Return what shows that a file was moved: the note's id, else its content."""
    path, data, note = version
    return note.id if note is not None and note.id != path else data


def _compare_note(before: _Version | None, after: _Version | None) -> MemoryChange:
    state = after or before
    assert state is not None
    path, _, note = state
    kind = note.kind if note else Kind.NOTE
    is_fact = kind is Kind.FACT
    by, details = None, list[str]()
    how: How = "learned" if is_fact else "added"
    if before and after:
        details = differences.describe(kind, [before[1]], after[1])
        how = "moved" if before[1] == after[1] else "changed"
        if before[2] and after[2] and bool(before[2].superseded_by) != bool(after[2].superseded_by):
            how, by = "superseded" if after[2].superseded_by else "restored", after[2].superseded_by
    elif before:
        how = "forgotten" if is_fact else "removed"
    was, text = _title(before), _title(after)
    return MemoryChange(
        how,
        note.kind.value if note else FILE,
        note.id if note else path,
        path,
        text or was or "",
        was if is_fact and after and was != text else None,
        by,
        tuple(sentence for sentence in details if not is_fact or not sentence.startswith("“")),
    )


def _title(version: _Version | None) -> str | None:
    """Return a fact as a sentence, any other note as it is called."""
    if version is None:
        return None
    path, _, note = version
    if note is None or note.kind not in {Kind.FACT, Kind.ENTITY, Kind.EPISODE}:
        return path
    return " ".join(note.text.split()) if note.kind is Kind.FACT else note_name(path)


def diff_words(before: str, after: str) -> Iterator[tuple[str, str]]:
    """Yield (`=`, `-` or `+`, words) of how `before` becomes `after`, word by word."""
    old, new = (re.findall(r"\s*\S+", text) for text in (before, after))
    matcher = SequenceMatcher(None, [word.strip() for word in old], [word.strip() for word in new], autojunk=False)
    for tag, *span in matcher.get_opcodes():
        taken, brought = "".join(old[span[0] : span[1]]), "".join(new[span[2] : span[3]])
        marked = (("=", brought),) if tag == "equal" else (("-", taken), ("+", brought))
        yield from ((mark, words) for mark, words in marked if words)
