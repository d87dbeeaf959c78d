"""Which facts a conversation confirms or replaces: what a model has marked, checked against what is stored.

The owner's own later words win at once, and so does what a speaker says again. What another person says of the owner's,
what only the assistant says, and what would replace a pinned or verified fact is stored and replaces nothing: the next
run of the janitor compares it and asks.
"""

import re
from collections.abc import Collection, Sequence
from datetime import datetime
from pathlib import Path

from quaid.capture.facts import Duplicate, NewFact
from quaid.claims import difference, find_lost_words, is_about_others
from quaid.index import documents
from quaid.index.documents import Document
from quaid.index.port import IndexConnection
from quaid.model import is_owner_label, name_key
from quaid.vault import files, notes
from quaid.vault.notes import StoredNote


def find_confirmed(index: IndexConnection, root: Path, new: NewFact) -> StoredNote | None:
    """Return the fact that a model says `new` repeats, if it has all that `new` says."""
    for known in _find_living(index, new.id, new.owner):
        data = files.read_note(root, known.path)
        if data is not None and not (difference(new.text, known.text) or find_lost_words(known.text, new.text)):
            return StoredNote(known.path, data)
    return None


def find_replaced(
    index: IndexConnection,
    root: Path,
    new: Sequence[NewFact],
    same: Sequence[Duplicate],
    owners: Collection[str],
    now: datetime,
) -> list[tuple[StoredNote | int, int]]:
    """Return (older fact, place of the one of `new` that replaces it), as a model has marked and `may_replace` allows.
    An older fact is a note, or the place of another of `new`.

    `same` has for each of `new` its duplicate, `owners` are the names of the owner of the memory, and `now` is when a
    fact without a time was stated.
    """
    places: dict[str, int] = {fact.text: place for place, fact in enumerate(new)}
    last = [max(map(int, re.findall(r"\^t(\d+)", " ".join(fact.turns))), default=0) for fact in new]
    found: list[tuple[StoredNote | int, int]] = []
    marked = [(place, fact, mark) for place, fact in enumerate(new) for mark in fact.replaces]
    for place, fact, mark in sorted(marked, key=lambda each: last[each[0]]):
        # Of two facts that replace the same one, the later one replaces the earlier one.
        earlier, older = places.get(mark), None
        olds: Sequence[Document | NewFact] = ()
        if earlier is not None:
            older, olds = same[earlier], [new[earlier]] if earlier != place and last[earlier] <= last[place] else ()
            older = earlier if older is None else older
        for known in _find_living(index, mark, fact.owner) if earlier is None else ():
            data = files.read_note(root, known.path)
            older, olds = (StoredNote(known.path, data), [known]) if data is not None else (None, ())
        if older is None or not (olds and may_replace(fact, olds[0], owners)):
            continue
        if isinstance(older, StoredNote):
            note = notes.parse_note(older.rel_path, older.data)
            stated = notes.parse_time(note.created)
            is_early = stated is not None and stated > (fact.created or now)
            if note.pinned or note.verified or is_early or older == same[place]:
                continue
        found.append((older, place))
        places[mark] = place
    return found


def may_replace(new: NewFact, old: Document | NewFact, owners: Collection[str]) -> bool:
    """Return whether `new` replaces `old` without a question: a person states it, who may state it, or both are from
    the memories of other programs.
    """
    own = {"", *map(name_key, owners)}
    keys = (name_key(one.speaker or "") for one in (new, old))
    speaker, before = ("" if key in own or is_owner_label(key) else key for key in keys)
    is_stated = new.source == "user" or (new.source == "import" and old.source in {"import", "assistant"})
    if not is_stated or is_about_others(new.text, old.text):
        return False
    words = f" {name_key(f'{new.text} {old.text}')}"
    is_of_owner = any(f" {key.split()[0]}" in words for key in own if key)
    is_own_matter = before != "" or name_key(new.text).startswith(speaker)
    return speaker in {"", before} or (is_own_matter and not is_of_owner)


def _find_living(index: IndexConnection, note_id: str | None, owner: str) -> list[Document]:
    wanted = "kind = 'fact' AND superseded_by IS NULL AND d.id = ? AND owner = ?"
    return documents.find_documents(index, wanted, (note_id, owner), with_text=True)
