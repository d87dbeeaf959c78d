"""The words of questions that are kept in memory say what FTS5 says."""

from __future__ import annotations

import random
from collections.abc import Iterator

import apsw
import pytest

from quaid.index import documents, fulltext
from quaid.index.documents import KnownFile
from quaid.index.fulltext import Postings
from quaid.index.sqlite import database
from quaid.vault import notes

WORDS = ["oat", "milk", "tea", "harbour", "violin", "choir", "Maya", "Jon", "plans", "planned", "the", "of", "北京"]


@pytest.fixture(scope="module")
def index() -> Iterator[apsw.Connection]:
    connection = database.make_in_memory()
    chance = random.Random(3)
    for number in range(120):
        add(connection, f"n{number}", " ".join(chance.choices(WORDS, k=chance.randint(1, 8))) + " everywhere")
    yield connection
    connection.close()


def add(connection: apsw.Connection, name: str, text: str) -> None:
    note = notes.parse_note(f"{name}.md", f"{text}\n".encode())
    documents.replace_document(connection, note, KnownFile(1, 1, 1, 1, 1, note.content_hash))


def warmed() -> Postings:
    postings = Postings()
    postings._asked = 1
    return postings


@pytest.mark.parametrize("limit", [1, 7, 400])
@pytest.mark.parametrize(
    "text", ["oat milk", "plans", "Maya's violin at the harbour", "nowhere", "北京 tea", "everywhere"]
)
def test_kept_words_rank_as_fts5_does(index, text, limit):
    words, postings = tuple(fulltext.terms(text)), warmed()
    expected = fulltext.search(index, fulltext.match_any(words), limit)
    for _ in range(2):  # looked up, and from memory
        assert postings.search(index, words, limit) == expected
    assert postings.is_quick(index, words)


def test_kept_words_stay_within_what_is_allowed(index):
    words, allowed = ("oat", "violin"), frozenset({*range(3, 30), 99_999})
    expected = fulltext.search(index, fulltext.match_any(words), 9, allowed)
    assert 0 < len(expected) <= 9
    assert warmed().search(index, words, 9, allowed) == expected


def test_kept_words_are_read_again_when_the_index_changes(tmp_path) -> None:  # type: ignore[no-untyped-def]
    writer, _ = database.connect_writer(tmp_path / "index.db")
    add(writer, "one", "a blue bicycle")
    reader, postings = database.connect_reader(tmp_path / "index.db"), warmed()
    assert len(postings.search(reader, ("bicycle",), 5)) == 1
    add(writer, "two", "a red bicycle")
    assert not postings.is_quick(reader, ("bicycle",))
    assert len(postings.search(reader, ("bicycle",), 5)) == 2
    reader.close()
    writer.close()


@pytest.fixture
def large(index, monkeypatch):
    """The index, taken for a large one of whose words few are read."""
    monkeypatch.setattr(fulltext, "MANY", 10)
    monkeypatch.setattr(fulltext, "MAX_READ", 30)
    return index


@pytest.mark.parametrize("words", [("violin", "everywhere"), ("everywhere", "oat", "violin"), ("plans", "the", "of")])
def test_frequent_words_of_a_large_index_rank_what_rarer_ones_find(large, words):
    counts = fulltext.count_matches(large, words)
    rarest = min(words, key=counts.__getitem__)
    assert counts[rarest] < 60
    expected = dict(fulltext.search(large, fulltext.match_any(words), 400))
    for postings in (Postings(), warmed()):
        found = postings.search(large, words, 9)
        assert found == sorted(found, key=lambda each: (-each[1], each[0]))
        assert dict(found) == pytest.approx({chunk_id: expected[chunk_id] for chunk_id, _ in found})
        has_rarest = {chunk_id for chunk_id, _ in fulltext.search(large, fulltext.match_any([rarest]), 400)}
        best = sorted((expected[chunk_id] for chunk_id in has_rarest), reverse=True)[:9]
        assert [score for _, score in found] == pytest.approx(best)


def test_a_frequent_word_of_a_large_index_is_read_where_there_is_no_other(large):
    assert len(warmed().search(large, ("everywhere",), 400)) == 120
    assert len(warmed().search(large, ("everywhere", "nowhere"), 400)) == 120


def test_more_words_are_read_in_a_large_index_where_few_chunks_are_allowed(large):
    words, allowed = ("violin", "everywhere"), frozenset({7, 8, 9})
    assert {chunk_id for chunk_id, _ in warmed().search(large, words, 9, allowed)} == allowed
