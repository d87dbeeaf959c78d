"""The keyword channel: FTS5 over all chunks."""

from __future__ import annotations

import re
from collections.abc import Sequence

import apsw

from quaid.model import Chunk

# bm25 weights of the columns text, context, keywords.
WEIGHTS = (1.0, 1.0, 0.5)
STOP_WORDS = frozenset(
    """a about after all also am an and any are as at be because been before being but by can could did do does doing
    for from had has have having he her here hers him his how i if in into is it its just me more most my no not of on
    or our out over own s she should so some such t than that the their them then there these they this those to too
    under until up very was we were what when where which while who whom whose why will with would you your
    """.split()  # noqa: SIM905 - a list would be a screen long
)
_TOKEN = re.compile(r"[^\W_]+", re.UNICODE)


def insert(connection: apsw.Connection, chunk_id: int, chunk: Chunk) -> None:
    connection.execute(
        "INSERT INTO fulltext (rowid, text, context, keywords) VALUES (?,?,?,?)",
        (chunk_id, chunk.text, chunk.context, chunk.keywords),
    )


def remove(connection: apsw.Connection, chunk_ids: Sequence[int]) -> None:
    connection.executemany("DELETE FROM fulltext WHERE rowid = ?", [(chunk_id,) for chunk_id in chunk_ids])


def terms(text: str) -> list[str]:
    """The words of `text` worth searching, lower case, each once; all of them when every one is a stop word."""
    words = list(dict.fromkeys(_TOKEN.findall(text.lower())))
    return [word for word in words if word not in STOP_WORDS] or words


def match_any(words: Sequence[str]) -> str:
    """An FTS5 query: any of `words`, each quoted so that no word is syntax."""
    return " OR ".join(f'"{word}"' for word in words)


def search(connection: apsw.Connection, match: str, limit: int) -> list[tuple[int, float]]:
    """(chunk_id, bm25) with the best first; bm25 is positive here, more is better."""
    if not match:
        return []
    rows = connection.execute(
        f"SELECT rowid, bm25(fulltext, {', '.join(map(str, WEIGHTS))}) AS rank FROM fulltext "
        "WHERE fulltext MATCH ? ORDER BY rank, rowid LIMIT ?",
        (match, limit),
    )
    return [(int(row[0]), -float(row[1])) for row in rows]
