"""The proof of a purge: every object, file and row is read once more, and none holds the text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from quaid.history.objects import iterate_objects
from quaid.history.repository import Repository
from quaid.local.rows import find_phrases, iterate_values
from quaid.purge.kept_files import iterate_files, read_file
from quaid.purge.rules import PurgeRules

_SQLITE = b"SQLite format 3\0"
_INDEXED = {
    "fulltext": "SELECT path FROM chunks JOIN documents USING (doc_id) WHERE chunk_id = ?",
    "episode_words": "SELECT path FROM documents WHERE doc_id = ?",
}
"""What the rows of an index's full-text tables were made of: files that are read themselves."""


@dataclass(slots=True)
class Proof:
    """What was read, and each place that still holds the text. The notes in `similar` have its words with other signs
    between them, so that only their owner can tell whether it is the same.
    """

    objects: int = 0
    files: int = 0
    rows: int = 0
    places: tuple[str, ...] = ()
    similar: set[str] = field(default_factory=set)

    @property
    def holds(self) -> bool:
        """Return whether nothing was found."""
        return not self.places


def prove(
    repository: Repository, folders: tuple[Path, ...], rules: PurgeRules, tick: Callable[[int], None] = lambda _: None
) -> Proof:
    """Read all objects of git, the files beside them, the files of `folders` and the rows of every database there.

    Raises:
        GitError, DiskFailedError: an object, or a database, cannot be read.
    """
    proof = Proof()
    proof.places = tuple(_find_places(repository, folders, rules, tick, proof))
    return proof


def _find_places(
    repository: Repository, folders: tuple[Path, ...], rules: PurgeRules, tick: Callable[[int], None], proof: Proof
) -> Iterator[str]:
    for item in iterate_objects(repository):
        proof.objects += 1
        if not proof.objects % 1000:
            tick(proof.objects)
        if (item.kind == "blob" and rules.change_file(item.data) != item.data) or rules.wording.is_in(item.data):
            yield f"{item.kind} {item.id}"
    for folder, skipped in (*((folder, ".git") for folder in folders), (repository.common_dir, "objects")):
        for path in iterate_files(folder, skipped):
            proof.files += 1
            data = read_file(path)
            if rules.change_file(data) != data or rules.wording.is_in(str(path.relative_to(folder)).encode()):
                yield str(path)
            if data.startswith(_SQLITE):
                yield from (f"{path}, table {table}" for table in _find_tables(path, rules, proof))


def _find_tables(path: Path, rules: PurgeRules, proof: Proof) -> Iterator[str]:
    """The tables of a database, full-text search's own among them, that hold the text in a row."""
    for table, value in iterate_values(path):
        proof.rows += 1
        if rules.wording.is_in(value):
            yield table
    for table, note in find_phrases(path, rules.wording.texts, _INDEXED):
        if note:
            proof.similar.add(note)
        else:
            yield table
