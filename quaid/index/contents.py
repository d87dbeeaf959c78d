"""An index as a whole: what it says of itself, and what makes two of them equal."""

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from quaid.index.port import IndexConnection
from quaid.index.scope import EVERYTHING, Scope
from quaid.model import CONFLICT_PROBLEM, without_ending

SCHEMA_VERSION = 17
GENERATION = "generation"
"""The fact that is another random word each time an index is begun."""
SHARED_ATTEMPTS = 3
# What is compared between two indexes: everything but row numbers, file times and how far embedding has come.
_DUMPED = {
    "documents": "path, content_hash, id, kind, type, title, text_hash, status, owner, privacy, confidence, "
    "durability, speaker, source, session, project, technical, pinned, verified, confirmations, created, "
    "valid_from, valid_until, superseded_by, problems",
    "chunks": "path, ordinal, text, context, keywords, turn, chunks.speaker, said_at, passage, days, "
    "instructs, text_key",
    "passages": "path, ordinal, heading, passages.text, first_line, last_line",
    "names": "path, position, name_key, name",
    "edges": "path, subject_key, relation, object_key, subject, object",
    "links": "path, target_key",
    "tags": "path, tag",
    "pending": "path, target_key, successor_key, reason",
    "citations": "path, episode, turn",
}


def get_meta(connection: IndexConnection, key: str) -> str | None:
    value: str | None = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).get
    return value


def set_meta(connection: IndexConnection, key: str, value: str) -> None:
    connection.execute("DELETE FROM meta WHERE key = ?", (key,))
    connection.execute("INSERT INTO meta (key, value) VALUES (?, ?)", (key, value))


def list_folders(connection: IndexConnection) -> dict[str, str]:
    """Return the folders whose notes are all in the index as their files were, each with the digest of its listing."""
    return dict(connection.execute("SELECT substr(key, 8), value FROM meta WHERE substr(key, 1, 7) = 'listed:'"))


def replace_folders(connection: IndexConnection, before: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Replace the folders `before` by those `now`."""
    changed = [f"listed:{folder}" for folder in before if before[folder] != now.get(folder)]
    connection.executemany("DELETE FROM meta WHERE key = ?", [(key,) for key in changed])
    new = [(f"listed:{folder}", digest) for folder, digest in now.items() if digest != before.get(folder)]
    connection.executemany("INSERT INTO meta (key, value) VALUES (?, ?)", new)


def manifest(connection: IndexConnection) -> str:
    """Return SHA-256 of the schema version and of every (path, content hash): equal on any two machines with equal
    files.
    """
    import hashlib

    digest = hashlib.sha256(f"quaid index {SCHEMA_VERSION}\n".encode())
    for path, content_hash in connection.execute("SELECT path, content_hash FROM documents ORDER BY path"):
        digest.update(f"{content_hash} {path}\n".encode())
    return digest.hexdigest()


def dump(connection: IndexConnection) -> Iterator[str]:
    """Return the index as sorted lines of JSON, without row numbers: two indexes are equal when their dumps are."""
    for table, columns in _DUMPED.items():
        source = table if table == "documents" else f"{table} JOIN documents USING (doc_id)"
        picked = columns if table == "documents" else f"documents.{columns}"
        rows = connection.execute(f"SELECT {picked} FROM {source}")
        yield from (f"{table} {row}" for row in sorted(json.dumps(row, ensure_ascii=False) for row in rows))


@contextmanager
def shared_snapshot(one: IndexConnection, other: IndexConnection) -> Iterator[IndexConnection]:
    """Let all that is read meanwhile through `one` and through the yielded connection be of one moment. That is
    `other`, or `one` itself where others write too often for two to begin between two writes.
    """
    for _ in range(SHARED_ATTEMPTS):
        before = other.version()
        with one.snapshot(), other.snapshot():
            if other.version() == before:  # nobody wrote between the two
                yield other
                return
    with one.snapshot():
        yield one


def find_copied(connection: IndexConnection, among: Collection[str]) -> set[str]:
    """Return those of the paths `among` whose content is also in another note of the same name, which is not one of
    them.
    """
    rows = connection.execute(
        "SELECT d.path FROM documents d JOIN names n ON n.doc_id = d.doc_id AND n.position = 0 "
        "JOIN names c ON c.name_key = n.name_key AND c.position = 0 JOIN documents o ON o.doc_id = c.doc_id "
        "WHERE d.path IN (SELECT value FROM json_each(?1)) AND o.content_hash = d.content_hash "
        "AND o.path NOT IN (SELECT value FROM json_each(?1))",
        (json.dumps(list(among)),),
    )
    return {path for (path,) in rows}


def list_copies(connection: IndexConnection) -> list[tuple[str, str]]:
    """Return (path, sentence) for every note that has the id of another, or the text of one after which it is named."""
    found: list[tuple[str, str]] = []
    for note_id, paths in connection.execute(
        "SELECT id, json_group_array(path) FROM documents WHERE id <> path GROUP BY id HAVING count(*) > 1"
    ):
        first, *others = sorted(json.loads(paths))
        found += [(other, f"has the same id as {first} ({note_id})") for other in others]
    for (equal,) in connection.execute(
        "SELECT json_group_array(path) FROM documents WHERE id = path AND size > 0 "
        "GROUP BY content_hash HAVING count(*) > 1"
    ):
        first, *others = sorted(sorted(json.loads(equal)), key=len)
        stem = without_ending(first)
        # Sync tools call copies "note 2", "note (1)" or "note-LAPTOP", as people call other notes.
        copies = (other for other in others if other.startswith(stem) and other[len(stem)] in " (-_.")
        found += [(other, f"has the same text as {first}; remove one of them") for other in copies]
    return found


def list_marked(connection: IndexConnection, scope: Scope = EVERYTHING) -> list[str]:
    """Return the paths of the notes in `scope` that have the marks of a merge conflict, from a merge or written."""
    rows = connection.execute(
        "SELECT d.path FROM documents d WHERE problems <> '[]' AND EXISTS "
        f"(SELECT 1 FROM json_each(problems) WHERE value = :conflict) {scope.and_documents} ORDER BY d.path",
        {"conflict": CONFLICT_PROBLEM, **scope.values},
    )
    return [path for (path,) in rows]


def list_successors(connection: IndexConnection) -> list[tuple[str, str, str | None]]:
    """Return (path, what it says that replaced it, path of that note or None) of every superseded note, by path.

    A note is named by its id, its path with or without the ending, its name or an alias.
    """
    return connection.execute(
        "SELECT d.path, d.superseded_by, (SELECT min(w.path) FROM documents w WHERE w.doc_id IN ("
        "SELECT doc_id FROM documents WHERE id = d.superseded_by "
        "UNION SELECT doc_id FROM documents WHERE path IN (d.superseded_by, d.superseded_by || '.md') "
        "UNION SELECT doc_id FROM names WHERE name_key = lower(d.superseded_by))) "
        "FROM documents d WHERE d.superseded_by IS NOT NULL ORDER BY d.path"
    ).fetchall()


def list_broken_citations(connection: IndexConnection) -> list[tuple[str, str, int]]:
    """Return (path, episode's note name, turn) of every citation of a turn that is not there, by path."""
    return connection.execute(
        "SELECT d.path, c.episode, c.turn FROM citations c JOIN documents d USING (doc_id) WHERE NOT EXISTS ("
        "SELECT 1 FROM names n JOIN chunks ch ON ch.doc_id = n.doc_id AND ch.turn = c.turn "
        "WHERE n.name_key = lower(c.episode) AND n.position = 0) ORDER BY 1, 2, 3"
    ).fetchall()


def list_shared_names(connection: IndexConnection) -> list[tuple[str, list[str]]]:
    """Return (name as written, paths) of every name or alias that several entity notes have."""
    rows = connection.execute(
        "SELECT n.name_key, min(n.name), d.path FROM names n JOIN documents d USING (doc_id) "
        "WHERE d.kind = 'entity' GROUP BY n.name_key, d.path ORDER BY n.name_key, d.path"
    )
    found: dict[str, tuple[str, list[str]]] = {}
    for key, name, path in rows:
        found.setdefault(key, (name, []))[1].append(path)
    return [(name, paths) for name, paths in found.values() if len(paths) > 1]
