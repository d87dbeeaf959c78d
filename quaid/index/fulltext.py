"""The keyword channel: FTS5 over all chunks."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from itertools import islice

import apsw

from quaid.index.scope import EVERYTHING, Scope
from quaid.model import Chunk
from quaid.text.stop_words import stop_words
from quaid.text.words import find_words, is_joined_letter, segmented

# bm25 weights of the columns text, context, keywords.
WEIGHTS = (1.0, 1.0, 0.5)
COMMON_SHARE, MANY = 0.5, 20_000
"""A word that more than this share of the chunks have tells none from another: bm25 gives it next to nothing, for the
price of ranking them all, which is felt in an index of more than so many chunks.
"""
_RANKED = (
    f"SELECT rowid AS found, bm25(fulltext, {', '.join(map(str, WEIGHTS))}) AS score "
    "FROM fulltext WHERE fulltext MATCH ?"
)


def insert(connection: apsw.Connection, chunk_id: int, chunk: Chunk) -> None:
    connection.execute(
        "INSERT INTO fulltext (rowid, text, context, keywords) VALUES (?,?,?,?)",
        (chunk_id, segmented(chunk.text), segmented(chunk.context), segmented(chunk.keywords)),
    )


def insert_again(connection: apsw.Connection) -> None:
    """Insert the words of all chunks and episodes into an index whose tables of words are empty."""
    rows = connection.execute("SELECT chunk_id, text, context, keywords FROM chunks ORDER BY chunk_id").fetchall()
    connection.executemany(
        "INSERT INTO fulltext (rowid, text, context, keywords) VALUES (?,?,?,?)",
        ((chunk_id, *(segmented(str(text)) for text in texts)) for chunk_id, *texts in rows),
    )
    insert_episodes(connection)


def insert_episodes(connection: apsw.Connection, doc_id: int | None = None) -> None:
    """Insert the words of an episode as a whole, or of all episodes, from the chunks of their turns."""
    rows = connection.execute(
        "SELECT doc_id, group_concat(text, ' '), group_concat(DISTINCT context) FROM chunks "
        "WHERE turn IS NOT NULL AND (?1 IS NULL OR doc_id = ?1) GROUP BY doc_id",
        (doc_id,),
    ).fetchall()
    connection.executemany(
        "INSERT INTO episode_words (rowid, text, context) VALUES (?,?,?)",
        ((episode, segmented(str(text)), segmented(str(context))) for episode, text, context in rows),
    )


def remove(connection: apsw.Connection, doc_id: int, chunk_ids: Sequence[int]) -> None:
    connection.executemany("DELETE FROM fulltext WHERE rowid = ?", [(chunk_id,) for chunk_id in chunk_ids])
    connection.execute("DELETE FROM episode_words WHERE rowid = ?", (doc_id,))


def terms(text: str, language: str | None = None) -> list[str]:
    """Return the words of `text` worth searching, lower case, each once; all of them when every one is a stop word of
    its `language`, which is English where it is not told.
    """
    words = list(dict.fromkeys(find_words(text)))
    dropped = stop_words(language or "en")
    return [word for word in words if word not in dropped] or words


def as_phrase(text: str) -> str:
    """Return `text` as one term: its words where they follow each other."""
    return " ".join(find_words(text))


def match_any(words: Sequence[str]) -> str:
    """Return an FTS5 query: any of `words`, each quoted so that no word is syntax; one with spaces is a phrase."""
    return " OR ".join(f'"{word}" *' if is_joined_letter(word) else f'"{word}"' for word in words)


def search(
    connection: apsw.Connection, match: str, limit: int, allowed: Collection[int] | None = None
) -> list[tuple[int, float]]:
    """Return (chunk_id, bm25) of chunks, of those in `allowed` if it is given, best first; bm25 is positive here, more
    is better.
    """
    if not match:
        return []
    if allowed is not None:  # all that match are ranked in any case, and only the best of them come as far as this
        ranked = connection.execute(f"{_RANKED} ORDER BY score, rowid", (match,))
        return list(islice(((row[0], -row[1]) for row in ranked if row[0] in allowed), limit))
    # In one row, as another thread would run between two of them.
    rows = connection.execute(
        f"SELECT json_group_array(json_array(found, -score)) FROM ({_RANKED} ORDER BY score, rowid LIMIT ?)",
        (match, limit),
    )
    return [(chunk_id, score) for chunk_id, score in json.loads(next(rows)[0])]


def list_matches(connection: apsw.Connection, match: str) -> tuple[list[int], list[float]]:
    """Return the chunk_ids of all chunks that match, ascending, and the bm25 of each."""
    rows = connection.execute(
        f"SELECT json_group_array(found), json_group_array(-score) FROM ({_RANKED} ORDER BY rowid)", (match,)
    )
    ids, scores = next(rows)
    return json.loads(ids), json.loads(scores)


def count(connection: apsw.Connection) -> int:
    """Return how many chunks have words."""
    return int(connection.execute("SELECT count(*) FROM fulltext_docsize").get)


def count_matches(
    connection: apsw.Connection, words: Sequence[str], allowed: Collection[int] | None = None
) -> dict[str, int]:
    """Return how many chunks, of those in `allowed` if it is given, have each of `words`."""
    if allowed is None:
        sql = "SELECT count(*) FROM fulltext WHERE fulltext MATCH ?"
        return {word: int(connection.execute(sql, (match_any([word]),)).get) for word in words}
    sql = "SELECT rowid FROM fulltext WHERE fulltext MATCH ?"
    return {word: sum(row[0] in allowed for row in connection.execute(sql, (match_any([word]),))) for word in words}


def is_common(matches: int, total: int) -> bool:
    """Return whether a word that `matches` of `total` chunks have is passed over where others are asked for."""
    return total > MANY and matches > COMMON_SHARE * total


def list_telling(connection: apsw.Connection, words: Sequence[str]) -> list[str]:
    """Return `words` without those that are common; all of them when every one is."""
    if (total := count(connection)) <= MANY:
        return list(words)
    sql = "SELECT count(*) FROM (SELECT 1 FROM fulltext WHERE fulltext MATCH ? LIMIT ?)"
    most = int(COMMON_SHARE * total) + 1
    counts = (int(connection.execute(sql, (match_any([word]), most)).get) for word in words)
    return [word for word, found in zip(words, counts, strict=True) if not is_common(found, total)] or list(words)


def search_episodes(
    connection: apsw.Connection, match: str, limit: int, scope: Scope = EVERYTHING
) -> list[tuple[int, float]]:
    """Return (doc_id, bm25) of whole episodes in `scope`, best first."""
    if not match:
        return []
    within = "JOIN documents d ON d.doc_id = episode_words.rowid" if scope.documents else ""
    rows = connection.execute(
        f"SELECT episode_words.rowid, bm25(episode_words) AS score FROM episode_words {within} "
        f"WHERE episode_words MATCH :match {scope.and_documents} ORDER BY score, episode_words.rowid LIMIT :limit",
        {"match": match, "limit": limit, **scope.values},
    )
    return [(int(row[0]), -float(row[1])) for row in rows]


def list_stems(connection: apsw.Connection, word: str, limit: int = 4000) -> list[str]:
    """Return stems of the vault that begin with the same letter and are not much longer: what `word` may be a slip
    of.
    """
    rows = connection.execute(
        "SELECT term FROM vocabulary WHERE term >= :first AND term < :after AND length(term) BETWEEN :short AND :long "
        "LIMIT :limit",
        {"first": word[0], "after": chr(ord(word[0]) + 1), "short": max(3, len(word) - 4), "long": len(word) + 1,
         "limit": limit},
    )  # fmt: skip
    return [str(row[0]) for row in rows]


def list_words(
    connection: apsw.Connection, stem: str, allowed: Collection[int] | None = None, limit: int = 20
) -> set[str]:
    """Words, in lower case, of the chunks in `allowed` (None for all) in which `stem` stands, among them those that it
    is the stem of.
    """
    rows = connection.execute("SELECT doc FROM occurrences WHERE term = ?", (stem,))
    chunk_ids = islice((int(row[0]) for row in rows if allowed is None or row[0] in allowed), limit)
    texts = connection.execute(
        "SELECT text || ' ' || context || ' ' || keywords FROM chunks "
        "WHERE chunk_id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(chunk_ids)),),
    )
    return {word for row in texts for word in find_words(str(row[0]))}
