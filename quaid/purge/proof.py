"""The proof of a purge: every object, file and row is read once more, and none holds the text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import apsw

from quaid.errors import GitError
from quaid.history.objects import iterate_objects
from quaid.history.repository import Repository
from quaid.purge.kept_files import iterate_files, iterate_rows
from quaid.purge.rules import PurgeRules

_SQLITE = b"SQLite format 3\0"


@dataclass(slots=True)
class Proof:
    """What was read, and each place that still holds the text."""

    objects: int = 0
    files: int = 0
    rows: int = 0
    places: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Return whether nothing was found."""
        return not self.places


def prove(
    repository: Repository, folders: tuple[Path, ...], rules: PurgeRules, tick: Callable[[int], None] = lambda _: None
) -> Proof:
    """Read all objects of git, the files beside them, the files of `folders` and the rows of every database there.

    Raises:
        GitError: an object cannot be read.
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
    for folder in (*folders, repository.common_dir):
        for path in iterate_files(folder, (".git", "objects")):
            proof.files += 1
            data = path.read_bytes()
            if rules.change_file(data) != data or rules.wording.is_in(str(path.relative_to(folder)).encode()):
                yield str(path)
            if data.startswith(_SQLITE):
                yield from (f"{path}, table {table}" for table in _find_tables(path, rules, proof))


def _find_tables(path: Path, rules: PurgeRules, proof: Proof) -> Iterator[str]:
    """The tables of a database, full-text search's own among them, that hold the text in a row."""
    try:
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
            for table, value in iterate_rows(connection):
                proof.rows += 1
                if rules.wording.is_in(value):
                    yield table
            yield from _find_phrases(connection, rules)
    except apsw.Error as error:
        raise GitError("finish the proof", f"{path} cannot be read ({error})") from error


def _find_phrases(connection: apsw.Connection, rules: PurgeRules) -> Iterator[str]:
    """The full-text indexes that find one of the texts: what they keep of words is packed, so they are asked."""
    query = "SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL TABLE%USING fts5 %'"
    for (name,) in list(connection.execute(query)):
        for text in rules.wording.texts:
            phrase = '"' + text.replace('"', '""').replace("\0", " ") + '"'
            try:
                if connection.execute(
                    f'SELECT rowid FROM "{name}" WHERE "{name}" MATCH ? LIMIT 1', (phrase,)
                ).fetchone():
                    yield str(name)
            except apsw.SQLError:  # a text without a word is in no full-text index
                continue
