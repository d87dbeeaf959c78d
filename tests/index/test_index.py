"""The derived index: what goes in comes out whole, is found, and equals what brute force finds."""

from __future__ import annotations

import random
from contextlib import closing

import numpy as np
import pytest
from hand_written import parse_note
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import examples
from vaults import dump

from quaid.errors import NoteNotFoundError
from quaid.index import contents, documents, fulltext, graph, references, vectors
from quaid.index import vectors as index_matrix
from quaid.index.documents import KnownFile
from quaid.index.sqlite import database
from quaid.index.sqlite.database import IndexReader
from quaid.index.vectors import VectorMatrix
from quaid.model import Chunk
from quaid.sqlite import transaction

DIMENSION = 8
TABLES = ("documents", "chunks", "names", "edges", "links", "citations", "passed_over")


@pytest.fixture
def index():
    connection = database.make_in_memory()
    yield connection
    connection.close()


def put(connection, path, text):
    data = text.encode() if isinstance(text, str) else text
    note = parse_note(path, data)
    return documents.replace_document(connection, note, KnownFile(len(data), 1, 2, 3, 4, note.content_hash))


def fact(text, note_id="01a", more=""):
    return f"---\nid: {note_id}\ntype: fact\n{more}---\n{text}\n"


def embed(connection, fingerprint="model-a"):
    """Give every pending chunk the vector its text stands for."""
    row = vectors.use_embedder(connection, fingerprint, DIMENSION, {"model": fingerprint})
    vectors.insert(
        connection, row, [(i, key, vector_of(text)) for i, key, text in vectors.list_pending(connection, 10**6)]
    )
    return row


def vector_of(text):
    made = np.random.default_rng(abs(hash(text)) % 2**32).normal(size=DIMENSION).astype("<f4")
    return (made / np.linalg.norm(made)).tobytes()


def counts(connection):
    rows = {table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES}
    rows["fulltext"] = connection.execute("SELECT count(*) FROM fulltext_docsize").fetchone()[0]
    for row in vectors.list_embedders(connection):
        rows[row.table] = connection.execute(f"SELECT count(*) FROM {row.table}").fetchone()[0]
    return rows


EPISODE = "---\ntype: episode\nsession: s1\n---\n**Maya**: first words ^t1\n\n**Tom**: second words ^t2\n"
RICH = (
    fact("[[Maya]] takes oat milk", more="keywords: [coffee]\naliases: [milky]\nturns: ['[[s1#^t1]]']\n")
    + "\n- [[Maya]] prefers [[Oat milk]]\n"
)


STEPS = st.lists(st.tuples(
    st.sampled_from("abcd"), st.sampled_from([RICH, EPISODE, "# H\n\ntext\n\n# I\n\nmore", "", None]), st.booleans()
), max_size=12)  # fmt: skip


@settings(max_examples=examples(40), deadline=None)
@given(STEPS)
def test_after_any_changes_the_index_equals_one_made_from_nothing(steps):
    kept = database.make_in_memory()
    there = {}
    for name, text, is_embedded in steps:
        path = f"facts/{name}.md" if text != EPISODE else f"episodes/{name}.md"
        if text is None:
            documents.remove_document(kept, path)
            there.pop(path, None)
        else:
            put(kept, path, text)
            there[path] = text
        if is_embedded:
            embed(kept)
    fresh = database.make_in_memory()
    for path, text in sorted(there.items(), reverse=True):
        put(fresh, path, text)
    assert dump(kept) == dump(fresh)
    assert contents.manifest(kept) == contents.manifest(fresh)
    embed(kept)
    assert database.find_inconsistencies(kept) == []
    assert vectors.count_pending(kept) == 0


def test_a_copy_of_an_index_larger_than_the_memory_of_sqlite_is_sound(tmp_path):
    source, target = tmp_path / "index.db", tmp_path / "copy.db"
    writer, _ = database.connect_writer(source)
    with closing(writer):
        for half in range(2):  # the first lies in the file, the second in its log alone
            with transaction(writer):
                for number in range(500):
                    contents.set_meta(writer, f"{half} {number}", "quokka " * 400)
            if not half:
                writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.copy(source, target)
        expected = sorted(writer.execute("SELECT * FROM meta"))
    with closing(database.connect_reader(target)) as copied:
        assert sorted(copied.execute("SELECT * FROM meta")) == expected


@settings(max_examples=examples(60), deadline=None)
@given(
    st.sampled_from(["facts/a.md", "entities/Maya.md", "episodes/e.md", "own.md"]),
    st.binary(max_size=80) | st.text(max_size=60).map(str.encode),
)
def test_any_file_fits_the_index(path, data):
    connection = database.make_in_memory()
    put(connection, path, data)
    assert documents.count(connection) == 1
    assert list(contents.dump(connection))
    assert database.find_inconsistencies(connection) == []
    connection.close()


@settings(max_examples=examples(300), deadline=None)
@given(st.text(st.characters(), max_size=40) | st.text("\"'*^:()-+{}[]~ NEAR AND OR NOT\0 a", max_size=30))
def test_no_question_is_a_syntax_error(text):
    connection = _shared_index()
    fulltext.search(connection, fulltext.match_any(fulltext.terms(text)), 5)


_SHARED = []


def _shared_index():
    if not _SHARED:
        connection = database.make_in_memory()
        put(connection, "facts/a.md", fact("Maya takes oat milk and NOT tea near the house"))
        _SHARED.append(connection)
    return _SHARED[0]


@pytest.mark.parametrize(("text", "found"), [
    ("running", True), ("CAFE", True), ("café", True), ("runs", True), ("coffee", True), ("walk", False), ("the", False), ("Oslo", False),
])  # fmt: skip
def test_words_are_found_by_stem_case_and_accent(index, text, found):
    put(index, "facts/a.md", fact("Maya runs to the Café", more="keywords: [coffee]\n"))
    words = fulltext.terms(text)
    hits = fulltext.search(index, fulltext.match_any(words), 5) if words != ["the"] else []
    assert bool(hits) is found


def test_better_matches_come_first_with_positive_scores(index):
    put(index, "facts/a.md", fact("tea"))
    put(index, "facts/b.md", fact("tea and oat milk"))
    put(index, "facts/c.md", fact("something else entirely"))
    ranking = fulltext.search(index, fulltext.match_any(["oat", "milk", "tea"]), 5)
    assert len(ranking) == 2
    assert ranking[0][1] > ranking[1][1] > 0
    assert documents.fetch_candidates(index, [ranking[0][0]])[ranking[0][0]].path == "facts/b.md"
    assert len(fulltext.search(index, '"tea"', 1)) == 1


def test_a_chunk_has_the_days_that_its_text_names_by_when_it_was_stated(index):
    put(index, "facts/a.md", fact("Maya moved yesterday, after 3 May 2024.", more="created: 2026-03-15T10:00:00Z\n"))
    put(index, "facts/b.md", fact("Maya moved yesterday.", "01b"))
    found = documents.fetch_candidates(index, [1, 2])
    assert found[1].days == "2026-03-14/2026-03-14 2024-05-04/9999-12-31"
    assert found[2].days == ""  # nobody knows which day that is


def test_a_very_long_question_is_borne(index):
    put(index, "facts/a.md", fact("word7 is here"))
    assert fulltext.search(index, fulltext.match_any([f"word{n}" for n in range(5000)]), 5)


def test_a_chunk_that_another_process_embedded_first_is_passed_over(index):
    put(index, "facts/a.md", fact("one two three"))
    pending = vectors.list_pending(index, 10)
    row = embed(index)
    vectors.insert(index, row, [(i, key, vector_of("late")) for i, key, _ in pending])
    assert counts(index)[row.table] == 1
    assert index.vectors.get(row, [pending[0][0]])[pending[0][0]] == vector_of("one two three")


def test_a_vector_for_a_text_that_changed_meanwhile_is_not_kept(index):
    put(index, "facts/a.md", fact("one two three"))
    row = vectors.use_embedder(index, "model-a", DIMENSION, {})
    old = vectors.list_pending(index, 10)
    put(index, "facts/a.md", fact("one two four"))
    vectors.insert(index, row, [(i, key, vector_of(text)) for i, key, text in old])
    assert vectors.count_pending(index) == 1
    assert counts(index)[row.table] == 0


def test_what_is_embedded_is_the_text_in_its_context(index):
    put(index, "own.md", "# Food\n\nbrown cheese\n")
    ((_, key, text),) = vectors.list_pending(index, 5)
    assert text == "own > Food: brown cheese" == Chunk(0, "brown cheese", "own > Food").embedded_text
    assert key == vectors.text_key(text)


def test_the_matrix_in_memory_finds_what_the_index_does(tmp_path):
    rng = random.Random(11)
    writer, _ = database.connect_writer(tmp_path / "index.db")
    for n in range(40):
        put(writer, f"facts/{n}.md", fact(f"fact number {n}", note_id=f"id{n}"))
    row = embed(writer)
    reader, matrix = database.connect_reader(tmp_path / "index.db"), VectorMatrix()
    for step in range(60):
        path = f"facts/{rng.choice([39, rng.randrange(45)])}.md"
        if rng.random() < 0.3:
            documents.remove_document(writer, path)
        else:
            put(writer, path, fact(f"fact of step {step}"))
        embed(writer)
        query = np.frombuffer(vector_of(f"question {step}"), "<f4")
        for limit in (7, documents.count(writer)):  # some, and as many as there are
            expected = writer.vectors.search(row, query.tobytes(), limit)
            found = matrix.search(reader, row, query, limit)
            # Vectors that are nearly equally near may change places.
            assert dict(found) == pytest.approx(dict(expected), abs=3e-5)
            assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
    reader.close()
    writer.close()


@pytest.mark.parametrize("spread", [1.0, 0.01])
def test_the_matrix_in_memory_misses_none_of_the_nearest_however_alike_all_are(tmp_path, spread):
    random_numbers = np.random.default_rng(3)
    writer, _ = database.connect_writer(tmp_path / "index.db")
    for n in range(1_500):
        put(writer, f"facts/{n}.md", fact(f"fact number {n}", note_id=f"id{n}"))
    row = vectors.use_embedder(writer, "model-a", 96, {})
    made = (random_numbers.normal(size=96) + spread * random_numbers.normal(size=(1_500, 96))).astype("<f4")
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    waiting = vectors.list_pending(writer, 2_000)
    vectors.insert(writer, row, [(i, key, each.tobytes()) for (i, key, _), each in zip(waiting, made, strict=True)])
    matrix = VectorMatrix()
    for asked in made[:20] + 0.1 * spread * made[20:40]:
        query = asked / np.linalg.norm(asked)
        cosines = dict(zip((i for i, _, _ in waiting), (made @ query).tolist(), strict=True))
        found = dict(matrix.search(writer, row, query, 50))
        assert found == pytest.approx({i: cosines[i] for i in found}, abs=2e-5)
        assert max(cosines[i] for i in cosines.keys() - found.keys()) <= min(cosines[i] for i in found) + 2e-5
        assert matrix.cosines(writer, row, query, [*cosines, 10**6]) == pytest.approx(cosines, abs=2e-5)
    writer.close()


def test_of_many_vectors_the_nearest_are_found_by_their_signs(tmp_path, monkeypatch):
    monkeypatch.setattr(index_matrix, "MIN_EXACT", 300)
    random_numbers = np.random.default_rng(3)
    writer, _ = database.connect_writer(tmp_path / "index.db")
    for n in range(1_500):
        put(writer, f"facts/{n}.md", fact(f"fact number {n}", note_id=f"id{n}"))
    row = vectors.use_embedder(writer, "model-a", 96, {})
    made = random_numbers.normal(size=(1_500, 96)).astype("<f4")
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    waiting = vectors.list_pending(writer, 2_000)
    vectors.insert(writer, row, [(i, key, each.tobytes()) for (i, key, _), each in zip(waiting, made, strict=True)])
    matrix, chunk_ids = VectorMatrix(), [i for i, _, _ in waiting]
    for place in range(20):
        query = made[place] + made[place + 20]
        query /= np.linalg.norm(query)
        cosines = dict(zip(chunk_ids, (made @ query).tolist(), strict=True))
        for allowed in (None, frozenset(chunk_ids[:900])):
            found = matrix.search(writer, row, query, 50, allowed)
            assert len(found) == 50
            assert dict(found) == pytest.approx({i: cosines[i] for i, _ in found}, abs=2e-5)
            nearest = sorted(allowed or cosines, key=lambda i: -cosines[i])[:2]
            assert place == 0 or {i for i, _ in found[:2]} == set(nearest)
    writer.close()


@pytest.fixture
def named(index):
    put(index, "facts/2026/11/tea-7k3qd.md", fact("tea", note_id="01kagx3m7r9q2d5w8t0v7k3qd"))
    put(index, "facts/2026/11/milk-aaaaa.md", fact("milk", note_id="01kagx3m7r9q2d5w8t0vaaaaa"))
    put(index, "entities/Maya Chen.md", "---\ntype: person\naliases: [Maya, 100%_sure]\n---\n")
    put(index, "own/Trip.md", "text")
    put(index, "other/Trip.md", "text")
    put(index, "facts/odd.md", fact("odd", note_id="a%b_c\\d"))
    return index


@pytest.mark.parametrize(("reference", "path"), [
    ("01kagx3m7r9q2d5w8t0v7k3qd", "facts/2026/11/tea-7k3qd.md"), ("7k3qd", "facts/2026/11/tea-7k3qd.md"),
    ("01kagx3m7r9q2d5w8t0va", "facts/2026/11/milk-aaaaa.md"), ("01KAGX3M7R9Q2D5W8T0VA", "facts/2026/11/milk-aaaaa.md"),
    ("facts/2026/11/tea-7k3qd.md", "facts/2026/11/tea-7k3qd.md"), ("tea-7k3qd", "facts/2026/11/tea-7k3qd.md"),
    ("Maya Chen", "entities/Maya Chen.md"), ("maya  CHEN.md", "entities/Maya Chen.md"),
    ("Maya", "entities/Maya Chen.md"), ("100%_sure", "entities/Maya Chen.md"), ("own/Trip.md", "own/Trip.md"),
    ("own/trip", "own/Trip.md"), ("OWN/TRIP.MD", "own/Trip.md"), ("./own/Trip", "own/Trip.md"),
    ("11/tea-7k3qd", "facts/2026/11/tea-7k3qd.md"), ("[[Maya Chen]]", "entities/Maya Chen.md"),
    ("![[maya chen|she]]", "entities/Maya Chen.md"), ("[[own/Trip#Day one]]", "own/Trip.md"),
    ("[the trip](own/Trip.md)", "own/Trip.md"), ("a%b_c\\d", "facts/odd.md"), ("a%b_", "facts/odd.md"),
])  # fmt: skip
def test_a_reference_is_an_id_its_part_a_path_a_name_or_an_alias(named, reference, path):
    assert references.resolve_one(named, reference).document.path == path


@pytest.mark.parametrize("reference", [
    "", "nobody", "%%%%", "____", "7k3", "0vaaaaX", "facts/2026/11", "x" * 60_000, "half \ud800", "\0", "' OR 1=1 --",
])  # fmt: skip
def test_what_nobody_is_called_is_not_found(named, reference):
    with pytest.raises(NoteNotFoundError):
        references.resolve_one(named, reference)


def test_exact_duplicates_are_found_among_living_and_merged_facts_of_the_owner(index):
    put(index, "facts/a.md", fact("Maya likes tea"))
    put(index, "facts/b.md", fact("Maya likes milk", more="superseded_by: '[[a]]'\n"))
    put(index, "facts/c.md", fact("Maya likes water", more="owner: tom\n"))
    find = {text: documents.find_by_text(index, parse_note("facts/x.md", text.encode()).text_hash, "default")
            for text in ("Maya likes tea", "Maya likes milk", "Maya likes water")}  # fmt: skip
    assert [found.path if found else None for found in find.values()] == ["facts/a.md", "facts/b.md", None]
    assert references.find_survivor(index, find["Maya likes milk"]) == find["Maya likes tea"]


def test_entities_are_found_by_name_alias_or_edge(index):
    put(index, "entities/Maya Chen.md", "---\ntype: person\naliases: [Maya]\n---\n- works_at [[Acme]]\n")
    put(index, "facts/a.md", "[[Tom]] is here\n\n- [[Tom]] knows [[Maya Chen]]\n")
    assert graph.find_entities(index, ["maya", "acme", "tom", "nobody"]) == {
        "maya": {"maya", "maya chen"}, "acme": {"acme"}, "tom": {"tom"},
    }  # fmt: skip
    steps = graph.neighbours(index, ["maya chen"])
    assert {(step.relation, step.from_key, step.to_key) for step in steps} == {
        ("works_at", "maya chen", "acme"), ("knows", "maya chen", "tom"),
    }  # fmt: skip
    assert len(graph.documents_about(index, ["tom"])) == 1
    assert graph.counts(index) == {"entities": 3, "edges": 2, "relations": 2}
    assert set(graph.entity_names(index)) == {("Maya Chen", "Maya Chen"), ("Maya", "Maya Chen")}
    for text, names in {
        "Maya Chen sails": {"Maya Chen", "Maya"}, "(Maya)": {"Maya"}, "Mayan art": set(), "maya": set(), "": set()
    }.items():  # fmt: skip
        assert {name for name, _ in graph.entity_names(index, text)} == names


def test_what_a_question_names_is_found_without_a_look_at_every_note(index):
    taken = []
    for count in (20, 400):
        for n in range(count):
            put(index, f"own/Trip {n}.md", "# Plans\n\nhike\n")
            put(index, f"entities/Person {n}.md", "---\ntype: person\n---\n")
        steps = []
        index.set_progress_handler(lambda steps=steps: bool(steps.append(1)), 1)
        assert graph.find_entities(index, ["trip 3", "person 3", "nobody"]) == {"person 3": {"person 3"}}
        index.set_progress_handler(None)
        taken.append(len(steps))
    assert taken[1] <= 2 * taken[0]


def test_a_reader_notices_that_the_file_was_replaced(tmp_path):
    path = tmp_path / "index.db"
    reader = IndexReader(path)
    assert reader.open() is None
    database.connect_writer(path)[0].close()
    first = reader.open()
    assert first is not None
    assert reader.open() is first
    other, _ = database.connect_writer(tmp_path / "other.db")
    put(other, "facts/a.md", "one two three")
    other.close()
    (tmp_path / "other.db").replace(path)
    assert documents.count(reader.open()) == 1
    path.unlink()
    assert reader.open() is None
    reader.close()


def test_what_is_embedded_next_is_what_was_asked_for_then_the_newest_then_a_fair_sample(index):
    for n in range(40):
        put(index, f"facts/{n}.md", fact(f"fact number {n}", note_id=f"id{n}"))
    put(index, "episodes/talk.md", "---\ntype: episode\nsession: s\n---\n**Maya**: one ^t1\n\n**Tom**: two ^t2\n")
    put(index, "facts/new.md", fact("the newest of all", note_id="new"))
    paths = dict(index.execute("SELECT chunk_id, path FROM chunks JOIN documents USING (doc_id)"))
    first = [paths[chunk_id] for chunk_id, _, _ in vectors.list_pending(index, 16, ["id3", "talk#t2", "id17", "gone"])]
    assert sorted(first[:4]) == ["episodes/talk.md", "episodes/talk.md", "facts/17.md", "facts/3.md"]
    assert first[4] == "facts/new.md"
    every = vectors.list_pending(index, 1_000)
    assert len(every) == len({chunk_id for chunk_id, _, _ in every}) == 43
    numbers = [int(path[6:-3]) for path in first[6:] if path[6:-3].isdigit()]
    assert numbers not in (sorted(numbers), sorted(numbers, reverse=True))
    keys = [key for _, key, _ in vectors.list_pending(index, 7)]
    assert keys == sorted(keys)  # less than one in `NEWEST`


@pytest.mark.parametrize("bad", [np.zeros(DIMENSION), np.full(DIMENSION, np.nan), np.full(DIMENSION, np.inf)])
def test_a_vector_without_a_direction_is_no_hit(index, bad):
    for n in range(5):
        put(index, f"facts/{n}.md", fact(f"fact number {n}", note_id=f"id{n}"))
    row = vectors.use_embedder(index, "model-a", DIMENSION, {})
    pending = sorted(vectors.list_pending(index, 10))
    blobs = [bad.astype("<f4").tobytes(), *(vector_of(text) for _, _, text in pending[1:])]
    vectors.insert(index, row, [(i, key, blob) for (i, key, _), blob in zip(pending, blobs, strict=True)])
    found = index.vectors.search(row, vector_of("anything"), 10)
    assert {i for i, _ in found} == {i for i, _, _ in pending[1:]}
