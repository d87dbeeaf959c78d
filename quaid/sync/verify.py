"""Proof that the index says what the files say: another one is built from nothing and compared."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import islice

from quaid.index import contents, vectors
from quaid.index.port import IndexConnection
from quaid.index.sqlite import database
from quaid.sync.derived_index import DerivedIndex

MAX_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of `verify`: `manifest` is equal on two machines with equal files, `differences` are the first
    `MAX_SHOWN`, as sentences.
    """

    ok: bool
    manifest: str
    notes: int
    pending: int
    differences: tuple[str, ...]


def verify(index: DerivedIndex, reader: IndexConnection) -> Verification:
    """Compare the index behind `reader` with one rebuilt from the files, row by row, and check it for damage."""
    rebuilt = index.rebuild_in_memory()
    try:
        current, made = Counter(contents.dump(reader)), Counter(contents.dump(rebuilt))
        notes = sum(line.startswith("documents ") for line in made)
        manifest = contents.manifest(rebuilt)
    finally:
        rebuilt.close()
    found = [f"only in the index: {line}" for line in sorted((current - made).elements())]
    found += [f"missing from the index: {line}" for line in sorted((made - current).elements())]
    # On a connection of its own: FTS5 checks by what a connection has cached, which another one's writing outdates.
    own = database.connect_reader(index.path)
    try:
        found += database.find_inconsistencies(own)
    finally:
        own.close()
    return Verification(not found, manifest, notes, vectors.count_pending(reader), tuple(islice(found, MAX_SHOWN)))
