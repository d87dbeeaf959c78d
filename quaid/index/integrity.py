"""Broken references and names that several notes claim, found in the whole index at once."""

from __future__ import annotations

from quaid.index.port import IndexConnection


def list_successors(connection: IndexConnection) -> list[tuple[str, str, str | None]]:
    """Return (path, what it says that replaced it, path of that note or None) of every superseded note, by path.

    A note is named by its id, its path with or without the ending, its name or an alias.
    """
    rows = connection.execute(
        "SELECT d.path, d.superseded_by, (SELECT min(w.path) FROM documents w WHERE w.doc_id IN ("
        "SELECT doc_id FROM documents WHERE id = d.superseded_by "
        "UNION SELECT doc_id FROM documents WHERE path IN (d.superseded_by, d.superseded_by || '.md') "
        "UNION SELECT doc_id FROM names WHERE name_key = lower(d.superseded_by))) "
        "FROM documents d WHERE d.superseded_by IS NOT NULL ORDER BY d.path"
    )
    return [(str(row[0]), str(row[1]), row[2]) for row in rows]


def list_broken_citations(connection: IndexConnection) -> list[tuple[str, str, int]]:
    """Return (path, episode's note name, turn) of every citation of a turn that is not there, by path."""
    rows = connection.execute(
        "SELECT d.path, c.episode, c.turn FROM citations c JOIN documents d USING (doc_id) WHERE NOT EXISTS ("
        "SELECT 1 FROM names n JOIN chunks ch ON ch.doc_id = n.doc_id AND ch.turn = c.turn "
        "WHERE n.name_key = lower(c.episode) AND n.position = 0) ORDER BY 1, 2, 3"
    )
    return [(str(row[0]), str(row[1]), int(row[2])) for row in rows]


def list_shared_names(connection: IndexConnection) -> list[tuple[str, list[str]]]:
    """Return (name as written, paths) of every name or alias that several entity notes have."""
    rows = connection.execute(
        "SELECT n.name_key, min(n.name), d.path FROM names n JOIN documents d USING (doc_id) "
        "WHERE d.kind = 'entity' GROUP BY n.name_key, d.path ORDER BY n.name_key, d.path"
    )
    found: dict[str, tuple[str, list[str]]] = {}
    for key, name, path in rows:
        found.setdefault(str(key), (str(name), []))[1].append(str(path))
    return [(name, paths) for name, paths in found.values() if len(paths) > 1]
