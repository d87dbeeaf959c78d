"""The interface of the index to recall, sync and report, for any engine: the connection is the port.

The rows of notes are asked for in SQL that SQLite and PostgreSQL both understand, so it is written once, in the modules
of this package. What the engines do each in their own way, they do behind `words`, `vectors` and the few methods here.
`json_each`, `json_group_array`, `group_concat`, `instr`, `strftime` and `->>` mean what they mean in SQLite; a number
that comes out of JSON is cast; an order by what may be null says where nulls go; `CROSS JOIN … ON` is a hint.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

Values = Sequence[Any] | Mapping[str, Any]
"""The parameters of a statement: of `?` in their order, of `?1` by their place, of `:name` by name."""


class EmbedderRow(NamedTuple):
    """An embedder whose vectors the index holds. `settings` opens it again."""

    embedder_id: int
    fingerprint: str
    dimension: int
    settings: Mapping[str, object]
    active: bool

    @property
    def table(self) -> str:
        return f"vectors_{self.embedder_id}"


class Rows(Protocol):
    """The rows that a statement returns, each a tuple."""

    def __iter__(self) -> Iterator[Any]: ...

    def __next__(self) -> Any: ...

    def fetchone(self) -> Any | None:
        """Return the next row, None after the last."""

    def fetchall(self) -> list[Any]:
        """Return all rows that are left."""

    @property
    def get(self) -> Any:
        """The value of a row of one column; None without a row."""


class Words(Protocol):
    """The words of chunks, stemmed.

    A `match` is `"a phrase" OR "another"`; with ` *` after it a phrase is a prefix.
    """

    def insert(self, rows: Iterable[tuple[int, str, str, str]]) -> None:
        """Add chunks: chunk_id, text, context, keywords."""

    def remove(self, chunk_ids: Sequence[int]) -> None:
        """Forget the words of chunks."""

    def search(self, match: str, limit: int, allowed: Collection[int] | None) -> list[tuple[int, float]]:
        """Return (chunk_id, bm25) of chunks in `allowed` (None for all), best first; of equals the lower chunk_id."""

    def list_matches(self, match: str, other: str = "") -> tuple[list[int], list[float]]:
        """Return the chunk_ids of all chunks that match, ascending, and the bm25 of each; with `other` only of those
        that match it too, and the bm25 of both.
        """

    def count(self) -> int:
        """Return how many chunks have words."""

    def count_matches(self, match: str, most: int) -> int:
        """Return how many chunks match, `most` where there are more."""

    def list_stems(self, first: str, after: str, lengths: tuple[int, int], limit: int) -> list[str]:
        """Return the stems from `first` up to `after` that have from the one to the other of `lengths` characters."""

    def list_chunks(self, stem: str) -> Iterator[int]:
        """Yield the chunk of each occurrence of `stem`, ascending."""


class Vectors(Protocol):
    """The vectors of chunks, float32 bytes: a set of them for each embedder."""

    def create(self, row: EmbedderRow) -> None:
        """Begin the set of an embedder."""

    def drop(self, row: EmbedderRow) -> None:
        """Forget a set."""

    def held(self, row: EmbedderRow) -> str:
        """Return SQL that selects `chunk_id` of all chunks that have a vector in a set."""

    def insert(self, row: EmbedderRow, items: Sequence[tuple[int, bytes]]) -> None:
        """Add (chunk_id, vector) to a set."""

    def remove(self, row: EmbedderRow, chunk_ids: Sequence[int]) -> None:
        """Forget the vectors of chunks."""

    def search(
        self, row: EmbedderRow, query: bytes, limit: int, allowed: Collection[int] | None = None
    ) -> list[tuple[int, float]]:
        """Return (chunk_id, cosine similarity) of chunks, of those in `allowed` if it is given, nearest first."""

    def get(self, row: EmbedderRow, chunk_ids: Iterable[int]) -> dict[int, bytes]:
        """Return chunk_id -> vector of those of `chunk_ids` that have one, in their order."""

    def list_blocks(self, row: EmbedderRow) -> Iterator[tuple[Any, Any]]:
        """Yield blocks of all vectors, as arrays: the chunks, int64 [n], and their vectors, float32 [n, dimension]."""


class IndexConnection(Protocol):
    """A connection to one index."""

    @property
    def words(self) -> Words:
        """Its words."""

    @property
    def vectors(self) -> Vectors:
        """Its vectors."""

    @property
    def name(self) -> str:
        """What tells it from any other index."""

    def execute(self, statement: str, values: Values = (), /) -> Rows:
        """Run one statement and return its rows."""

    def executemany(self, statement: str, values: Iterable[Values], /) -> object:
        """Run one statement with each of `values`."""

    def insert(self, table: str, columns: str, values: Sequence[Any], /) -> int:
        """Add a row to `documents`, `chunks` or `embedders`; return its id. No chunk_id is given twice."""

    def transaction(self) -> AbstractContextManager[None]:
        """Let all that the body writes happen or, when it raises, nothing; one writer is at it at a time."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Let all that the body reads be of one moment."""

    def version(self) -> tuple[int, int]:
        """Return what changes when this connection or another one has changed what it reads."""

    def schema_version(self) -> int:
        """Return the version of Quaid's schema that it was made with."""

    def clear(self) -> None:
        """Forget everything and begin anew; inside a transaction, readers keep the old index until its end."""

    def close(self) -> None:
        """Close it."""
