"""Any bytes are a note; what cannot be read as meant is said and stays searchable."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hand_written import parse_note
from hypothesis import example, given, settings
from hypothesis import strategies as st
from matrices import examples, for_each

from quaid.model import Citation, Edge, Kind
from quaid.vault import notes
from quaid.vault.layout import entity_path
from quaid.vault.notes import parse_time, render_entity, render_fact, render_time, text_hash

FACT = """---
id: 01kagx3m7r9q2d5w8t0v7k3qd
type: preference
status: pending
owner: maya
confidence: 0.9
durability: mutable
speaker: Maya
source: user
session: 2f1c9a
created: 2026-11-20T14:30:00Z
valid_from: 2026-11-01
keywords: [coffee, oat, 007]
turns: ["[[20-1402-2f1c9a#^t3]]"]
pinned: true
confirmations: 2
superseded_by: "[[other fact]]"
aliases: oat, milk
colour: green  # the owner's own key
---
[[Maya Chen]] takes **oat milk** in her coffee.

- [[Maya Chen]] prefers [[Oat milk]]
"""
PATHS = (
    "facts/2026/11/a.md", "entities/Maya Chen.md", "episodes/2026/11/20-1402-2f1c9a.md", "SOUL.md", "journal/x.md",
    "snippets/x.md", "projects/p/PROJECT.md", "review/r.md", "own note.md", "deep/own.md",
)  # fmt: skip
KEYS = (
    "id", "type", "status", "owner", "confidence", "confirmations", "created", "started", "valid_from", "valid_until",
    "superseded_by", "keywords", "aliases", "turns", "tags", "title", "pinned", "technical", "session", "speaker",
)  # fmt: skip
VALUES = (
    "", "x", "fact", "[[a]]", "[a, [b]]", "{a: b}", "[{a: b}, [[c]]]", "nan", "inf", "-1", "1e300", "1e999", "0.5", "[]", "[[]]",
    "2026-11-20", "2026-99-99", "0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00", "2026-11-20T14:30:00Z", "true", "maybe",
    "!!null x", "|\n  block", "٣", "'[[x#^t1]]'", "\U0001f600",
)  # fmt: skip
BODIES = (
    b"", b"text\n", b"**Maya** (13:56): hi ^t1\n\n**Tom**: yo ^t2\n", b"- [[A]] knows [[B]]\n", b"# H\n\ntext", b"\xff\xfe\0x",
    b"**X** (2026-99-99 10:00): a ^t1", b"<<<<<<< a\nx\n=======\ny\n>>>>>>> b\n", b"\0\0\0\0", b"[[20-1402-2f1c9a#^t99999999999]]",
)  # fmt: skip
_heads = st.lists(
    st.tuples(st.sampled_from(KEYS), st.sampled_from(VALUES)), max_size=6, unique_by=lambda pair: pair[0]
).map(lambda pairs: "---\n" + "".join(f"{key}: {value}\n" for key, value in pairs) + "---\n")


def assert_fit_for_the_index(note):
    """What SQLite takes: text without NUL or half characters, whole numbers of 64 bits, no nan."""
    texts = [
        note.id, note.title, note.text, note.type, note.status, note.owner, note.session, note.created, note.valid_from,
        note.superseded_by, *note.names, *note.keywords, *note.links, *note.problems,
        *(text for chunk in note.chunks for text in (chunk.text, chunk.context, chunk.keywords, chunk.speaker, chunk.said_at)),
        *(text for edge in note.edges for text in (edge.subject, edge.relation, edge.object)),
    ]  # fmt: skip
    assert all(text is None or (isinstance(text, str) and "\0" not in text) for text in texts)
    for text in texts:
        (text or "").encode()
    assert 0 <= note.confirmations < 2**63
    assert note.confidence is None or abs(note.confidence) < 2**63
    assert all(0 <= citation.turn < 2**63 for citation in note.citations)
    assert bool(note.chunks) is (note.kind is not Kind.REVIEW)
    assert all(chunk.text.strip() for chunk in note.chunks if note.kind is not Kind.FACT)
    assert [chunk.ordinal for chunk in note.chunks] == list(range(len(note.chunks)))


@pytest.mark.slow
@settings(max_examples=examples(400))
@given(st.sampled_from(PATHS), _heads, st.sampled_from(BODIES) | st.binary(max_size=40))
@example("facts/a.md", "---\nconfirmations: nan\n---\n", b"")
@example("facts/a.md", "---\nconfirmations: 1e300\n---\n", b"")
@example("episodes/a.md", "---\nstarted: 0001-01-01T00:00:00+05:00\n---\n", b"**X** (10:00): a ^t1")
@example("own.md", "", b"\xff\xfea\0\0\0")
@example("own.md", "", b"")
def test_any_bytes_are_a_note(path, head, body):
    note = parse_note(path, head.encode() + body)
    assert_fit_for_the_index(note)
    assert parse_note(path, head.encode() + body) == note


@settings(max_examples=examples(200))
@given(st.sampled_from(PATHS), st.binary(max_size=80))
def test_any_bytes_without_a_head_are_a_note(path, data):
    assert_fit_for_the_index(parse_note(path, data))


# --- each kind


def test_a_fact_is_read_as_meant():
    note = parse_note("facts/2026/11/maya-7k3qd.md", FACT.encode())
    assert note.kind is Kind.FACT
    assert note.problems == ()
    assert (note.id, note.type, note.status, note.owner) == (
        "01kagx3m7r9q2d5w8t0v7k3qd",
        "preference",
        "pending",
        "maya",
    )
    assert (note.confidence, note.durability, note.speaker, note.source) == (0.9, "mutable", "Maya", "user")
    assert (note.created, note.valid_from, note.valid_until) == ("2026-11-20T14:30:00Z", "2026-11-01", None)
    assert (note.pinned, note.verified, note.confirmations, note.superseded_by) == (True, False, 2, "other fact")
    assert note.keywords == ("coffee", "oat", "007")
    assert note.text == "Maya Chen takes oat milk in her coffee."
    assert note.chunks[0].text == note.text
    assert note.chunks[0].keywords == "coffee oat 007 oat milk"
    assert note.edges == (Edge("Maya Chen", "prefers", "Oat milk"),)
    assert note.links == ("Maya Chen", "Oat milk")
    assert note.citations == (Citation("20-1402-2f1c9a", 3),)
    assert note.names == ("maya-7k3qd", "oat", "milk")
    assert note.text_hash == text_hash(note.text)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_newlines_and_bom_change_nothing_but_the_hash(newline, bom):
    note = parse_note("facts/a.md", (bom + FACT.replace("\n", newline)).encode())
    plain = parse_note("facts/a.md", FACT.encode())
    assert note.text == plain.text
    assert note.edges == plain.edges
    assert (note.id, note.keywords, note.problems) == (plain.id, plain.keywords, ())


def test_a_fact_without_a_head_is_a_citizen():
    note = parse_note("facts/by hand.md", b"Maya lives in Oslo.\n")
    assert (note.kind, note.id, note.status, note.text) == (
        Kind.FACT,
        "facts/by hand.md",
        "active",
        "Maya lives in Oslo.",
    )
    assert note.problems == ()


def test_a_fact_that_is_only_an_edge_says_it():
    assert parse_note("facts/a.md", b"- [[Maya]] works_at [[Acme]]\n").text == "Maya works at Acme"


def test_an_entity_owns_the_edges_of_its_note():
    data = (
        b"---\ntype: person\naliases: [Maya, M]\n---\nA friend.\n\n- works_at [[Acme]]\n- [[Tom]] knows [[Maya Chen]]\n"
    )
    note = parse_note("entities/Maya Chen.md", data)
    assert (note.kind, note.type, note.names) == (Kind.ENTITY, "person", ("Maya Chen", "Maya", "M"))
    assert note.edges == (Edge("Maya Chen", "works_at", "Acme"), Edge("Tom", "knows", "Maya Chen"))
    assert note.chunks[0].text == "A friend. Maya Chen works at Acme; Tom knows Maya Chen"
    assert note.chunks[0].context == "M"


def test_an_entity_without_words_is_found_by_its_name():
    assert parse_note("entities/Oslo.md", b"---\ntype: place\n---\n").chunks[0].text.startswith("Oslo")


def test_an_episode_is_its_turns():
    data = b"---\ntype: episode\nsession: s1\nstarted: 2023-05-08T13:56:00Z\n---\n**Maya** (13:56): hi ^t1\n\n**Tom**: yo ^t2\n"
    note = parse_note("episodes/2023/05/x.md", data)
    assert (note.kind, note.session, note.created) == (Kind.EPISODE, "s1", "2023-05-08T13:56:00Z")
    assert [(c.text, c.turn, c.speaker, c.said_at, c.context) for c in note.chunks] == [
        ("hi", 1, "Maya", "2023-05-08T13:56:00Z", "Maya (8 May 2023)"),
        ("yo", 2, "Tom", "2023-05-08T13:56:00Z", "Tom (8 May 2023)"),
    ]


def test_an_owners_note_is_its_sections():
    note = parse_note("Trips/Oslo.md", b"intro\n\n# Food\n\nbrown cheese\n\n## Drinks\n\naquavit\n")
    assert note.kind is Kind.NOTE
    assert [(c.context, c.text) for c in note.chunks] == [
        ("Oslo", "intro"), ("Oslo > Food", "brown cheese"), ("Oslo > Food > Drinks", "aquavit"),
    ]  # fmt: skip


@pytest.mark.parametrize(("path", "kind"), [
    ("SOUL.md", Kind.CORE), ("sub/SOUL.md", Kind.NOTE), ("snippets/SOUL.snippets.md", Kind.SNIPPET), ("journal/x.md", Kind.JOURNAL),
    ("projects/p/PROJECT.md", Kind.DOC), ("review/r.md", Kind.REVIEW), ("x/facts/a.md", Kind.NOTE),
])  # fmt: skip
def test_the_folder_says_what_a_note_is(path, kind):
    assert parse_note(path, b"text").kind is kind


# --- problems


@for_each(("head", "words"), [
    ("confidence: high", "confidence should be a number"),
    ("confidence: nan", "confidence should be a number"),
    ("confirmations: 1e300", "confirmations should be a number"),
    ("confirmations: -1", "confirmations should be a whole number"),
    ("confirmations: 1.5", "confirmations should be a whole number"),
    ("created: yesterday", "created should be a date"),
    ("valid_until: 2026-13-45", "valid_until should be a date"),
    ("status: [a, b]", "status should be one value"),
    ("type: {a: b}", "type should be one value"),
    ("keywords: {a: b}", "keywords should be a list"),
    ("aliases: [{a: b}]", "aliases should be a list of words"),
    ("pinned: perhaps", "pinned should be true or false"),
    ("id: x\nid: y", "more than once"),
    ("id: [", "not YAML"),
    ("{{date}}: x", "not YAML"),
])  # fmt: skip
def test_a_wrong_type_is_said_once_and_the_note_stays_searchable(head, words):
    note = parse_note("facts/a.md", f"---\n{head}\n---\nMaya lives in Oslo.\n".encode())
    assert [words in problem for problem in note.problems] == [True]
    assert "Maya lives in Oslo." in note.chunks[0].text
    assert_fit_for_the_index(note)


def test_the_head_of_an_own_note_may_be_toml():
    head = '+++\r\ntitle = "Grafting apples"\r\ndate = 2023-02-11\r\nauthor = "[[Ida]]"\r\ndraft = true\r\n+++\r\n'
    note = notes.parse_note("posts/a.md", f"{head}Boskoop on M9.\r\n".encode())
    assert (note.title, note.created, note.problems) == ("Grafting apples", "2023-02-11", ())
    assert note.edges == (Edge("a", "author", "Ida"),)
    assert [chunk.text for chunk in note.chunks] == ["Boskoop on M9."]
    assert note.chunks[0].keywords.splitlines()[1:] == ["date: 2023-02-11", "author: Ida", "draft: true"]


def test_a_broken_toml_head_is_said_and_stays_searchable():
    note = notes.parse_note("posts/a.md", b"+++\ntitle = Grafting\n+++\nBoskoop on M9.\n")
    assert "not TOML" in note.problems[0]
    assert "Boskoop on M9." in note.chunks[0].text


def test_an_own_note_may_begin_with_page_properties():
    head = "alias:: Nadia, N. Petrov\ntype:: person\nemployer:: [[Blue Current]]\n\n"
    note = notes.parse_note("pages/Nadia Petrov.md", f"{head}- drinks:: rooibos\n".encode())
    assert note.names == ("Nadia Petrov", "Nadia", "N. Petrov")
    assert note.edges == (Edge("Nadia Petrov", "employer", "Blue Current"),)
    assert [chunk.text for chunk in note.chunks] == ["drinks:: rooibos"]
    assert note.chunks[0].keywords.splitlines()[1:] == ["type: person", "employer: Blue Current"]


@pytest.mark.parametrize("text", ["a::b\n", "std::vector is a list\n", "+++ this is a diff\n", "at 10:: then\n"])
def test_what_only_looks_like_another_head_stays_text(text):
    note = notes.parse_note("a.md", f"{text}more\n".encode())
    assert [" ".join(chunk.text.split()) for chunk in note.chunks] == [" ".join(f"{text}more".split())]


@pytest.mark.parametrize(
    ("path", "head", "created"),
    [
        ("Daily/2026-03-14.md", "", "2026-03-14"),
        ("journals/2026_03_14.md", "", "2026-03-14"),
        ("Daily/2026-03-14.md", "date: 2025-01-02", "2025-01-02"),
        ("Daily/2026-03-14.md", "created: yesterday", "2026-03-14"),
        ("March.md", "", None),
    ],
)
def test_the_date_of_an_own_note_is_in_its_name_unless_it_says_another(path, head, created):
    assert notes.parse_note(path, f"---\n{head}\n---\nText.\n".encode()).created == created


@pytest.mark.parametrize(("data", "words", "text"), [
    ("Zoë mag Käse".encode("cp1252"), "not UTF-8", "Zoë mag Käse"),
    ("Zoë mag Käse".encode("utf-16"), "UTF-16", "Zoë mag Käse"),
    (b"Maya\0 likes long walks in the mountains of Norway", "NUL", "Maya  likes long walks in the mountains of Norway"),
    (b"\x89PNG\0\0\0\0\0\0\0IHDR", "not text", "a"),
    (b"A small program\0\0\0 of thirty bytes", "not text", "a"),
    (b"x" * 1_000_001, "only its first 1 MB are searchable", None),
])  # fmt: skip
def test_what_is_not_utf8_text_is_read_as_well_as_can_be(data, words, text):
    note = parse_note("a.md", data, max_bytes=1_000_000)
    assert words in note.problems[0]
    assert text is None or note.chunks[0].text == text


@pytest.mark.parametrize("extra", [0, 1, 2, 3])
def test_a_limit_inside_a_character_is_no_encoding_problem(extra):
    note = parse_note("a.md", ("x" * extra + "é😀" * 40_000).encode(), max_bytes=100_000)
    assert len(note.problems) == 1
    assert set(note.chunks[-1].text) <= set("xé😀")


def test_marks_of_a_conflict_are_text_and_named():
    data = b"---\nid: a\n---\n<<<<<<< HEAD\nMaya lives in Oslo\n=======\nMaya lives in Bergen\n>>>>>>> other\n"
    note = parse_note("facts/a.md", data)
    assert "conflict" in note.problems[0]
    assert "Oslo" in note.text
    assert "Bergen" in note.text
    assert "<<<<<<< HEAD" in note.text
    episode = parse_note("episodes/a.md", b"---\ntype: episode\nsession: s\nturn_count: 1\n---\n" + data[15:])
    assert episode.problems == ()


@for_each(("head", "field", "value"), [
    ('superseded_by: "[[Other fact|x]]"', "superseded_by", "Other fact"),
    ("superseded_by: [[Other fact]]", "superseded_by", "Other fact"),
    ("superseded_by: 01abc", "superseded_by", "01abc"),
    ("turns: [[[a#^t2]]]", "citations", (Citation("a", 2),)),
    ("turns:\n  - [[a#^t2]]", "citations", (Citation("a", 2),)),
    ("keywords: a, b ,, c", "keywords", ("a", "b", "c")),
    ("id: 007", "id", "007"),
    ("technical: Yes", "technical", True),
    ("technical: off", "technical", False),
    ("status:", "status", "active"),
])  # fmt: skip
def test_what_people_type_is_read_as_they_mean_it(head, field, value):
    note = parse_note("facts/a.md", f"---\n{head}\n---\nMaya lives in Oslo.\n".encode())
    assert getattr(note, field) == value
    assert not note.problems


# --- there and back


_words = st.from_regex(r"[A-Za-z][A-Za-z0-9 ,']{0,20}[a-z]", fullmatch=True).map(lambda text: " ".join(text.split()))
# A name that no file may have is linked by that of its file.
_linked = _words.filter(lambda word: entity_path(word) == f"entities/{word}.md")
_names = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=12).map(
    lambda name: " ".join(name.split())
)


@pytest.mark.slow
@settings(max_examples=examples(200))
@given(
    _words,
    st.floats(0, 1),
    st.lists(_words, max_size=3),
    st.integers(0, 99),
    st.booleans(),
    st.lists(st.tuples(_linked, _linked), max_size=3),
)
def test_a_rendered_fact_reads_back(text, confidence, keywords, confirmations, pinned, pairs):
    edges = tuple(dict.fromkeys(Edge(subject, "works_at", target) for subject, target in pairs))
    fields = {
        "id": "01a",
        "confidence": confidence,
        "keywords": keywords,
        "confirmations": confirmations,
        "pinned": pinned,
    }
    note = parse_note("facts/a.md", render_fact(fields, text, edges).encode())
    assert (note.id, note.text, note.confidence, note.pinned) == ("01a", text, confidence, pinned)
    assert (note.confirmations, note.edges, note.problems) == (confirmations, edges, ())
    assert note.keywords == tuple(keywords)


@settings(max_examples=examples(200))
@given(st.lists(_names, max_size=3), _names.filter(lambda name: not set("[]|#^") & set(name)))
def test_a_rendered_entity_reads_back(aliases, target):
    aliases = [alias for alias in aliases if alias]
    note = parse_note(
        "entities/Maya.md",
        render_entity({"type": "person", "aliases": aliases}, [Edge("Maya", "knows", target)]).encode(),
    )
    assert note.names == tuple(dict.fromkeys(["Maya", *aliases]))
    assert [(edge.subject, edge.relation) for edge in note.edges] == [("Maya", "knows")]
    assert not note.problems


@given(st.text(max_size=30), _words)
def test_an_appended_edge_is_the_last_line_and_the_rest_stays(text, name):
    edge = Edge("Maya", "knows", name)
    longer = notes.append_edge(text, edge)
    assert longer.startswith(text.rstrip("\r\n"))
    assert longer.rstrip("\r\n").endswith(notes.edge_line(edge))
    item = f"{text}\n- a"
    assert notes.append_edge(item, edge) == f"{item}{notes.newline_of(item)}{notes.edge_line(edge)}"


@given(st.text(max_size=60) | st.text(max_size=30).map(lambda text: f"---\na: 1\n---\n{text}"))
def test_head_and_body_joined_are_the_note(text):
    assert "".join(notes.split_body(text)) == text


# --- times and hashes


@pytest.mark.parametrize(("iso", "moment"), [
    ("2026-11-20T14:30:00Z", datetime(2026, 11, 20, 14, 30, tzinfo=UTC)),
    ("2026-11-20", datetime(2026, 11, 20, tzinfo=UTC)),
    ("2026-11-20T14:30:00+02:00", datetime(2026, 11, 20, 12, 30, tzinfo=UTC)),
    ("0001-01-01T00:00:00+05:00", None),
    ("soon", None), ("", None), (None, None),
])  # fmt: skip
def test_times_are_moments_with_their_offset_else_in_utc(iso, moment):
    assert parse_time(iso) == moment
    assert moment is None or (iso.endswith("+02:00") and parse_time(iso).hour == 14) or parse_time(iso).tzinfo is UTC


@given(
    st.datetimes(
        datetime(1000, 1, 1),  # noqa: DTZ001
        datetime(9000, 1, 1),  # noqa: DTZ001
        timezones=st.sampled_from([UTC, timezone(timedelta(hours=5))]),
    )
)
def test_a_time_reads_back_to_the_second(moment):
    assert parse_time(render_time(moment)) == moment.replace(microsecond=0)


@pytest.mark.parametrize(
    ("iso", "said"), [("2023-05-08T13:56:00Z", "8 May 2023"), ("2023-13-08", "2023-13-08"), ("soon", "soon")]
)
def test_a_day_is_said_in_words(iso, said):
    assert notes.format_day(iso) == said


@pytest.mark.parametrize(("one", "other", "same"), [
    ("Maya likes tea.", "Maya likes tea.", True),
    ("Maya likes tea.", "Maya likes tea", False),
    ("x² is the area", "x2 is the area", False),
    ("She speaks Polish", "She speaks polish", False),
    ("Maya likes tea", "Maya likes tea!", False),
    ("Maya likes tea", "Maya likes teas", False),
])  # fmt: skip
def test_exact_duplicates_share_a_hash(one, other, same):
    assert (text_hash(one) == text_hash(other)) is same


@pytest.mark.parametrize(("text", "problem"), [
    ('{\n  "title": "Pond",\n  "aliases": ["Carp pond"]\n}\n\nCarp.\n', None),
    ("\n---\ntitle: Pond\naliases: [Carp pond]\n---\nCarp.\n", "first line"),
    ("---\ntitle: Pond\n---\n---\ntitle: Lake\naliases: [Carp pond]\n---\nCarp.\n", "first line"),
    ("- title:: Pond\n  alias:: Carp pond\n- Carp.\n", None),
    ('+++\ntitle = "Pond"\ndate = \naliases = [\n  "Carp pond",\n]\n+++\nCarp.\n', "line 3"),
])  # fmt: skip
def test_heads_of_other_programs_name_an_own_note(text, problem):
    note = notes.parse_note("n.md", text.encode())
    assert (note.title, note.names) == ("Pond", ("n", "Carp pond"))
    assert "Carp." in note.chunks[0].text
    assert [problem in said for said in note.problems] == ([True] if problem else [])


@for_each("head", [
    "date: 2026-03-14", "Date: 14.03.2026", "Created: March 14, 2026", "created: '[[2026-03-14]]'", "created: [[2026-03-14]]",
    "created_at: 2026/3/14", "date created: Saturday, March 14th 2026", "created: 2026-03-14 # planted",
])  # fmt: skip
def test_an_own_note_is_of_the_day_that_its_head_states_in_any_form(head):
    note = notes.parse_note("Pond.md", f"---\n{head}\n---\nCarp.\n".encode())
    assert (note.created, note.problems) == ("2026-03-14", ())


def test_a_date_of_an_own_note_that_cannot_be_read_is_a_problem():
    note = notes.parse_note("2026-03-14 Pond.md", b"---\ndate: 03/04/2026\n---\nCarp.\n")
    assert note.created == "2026-03-14"
    assert note.problems == ("date should be a date like 2026-11-20, is '03/04/2026'",)


def test_properties_of_an_own_note_are_read_in_any_case():
    note = notes.parse_note("Pond.md", b"---\nTitle: The pond\nAliases: [Carp pond]\n---\nCarp.\n")
    assert (note.title, note.names) == ("The pond", ("Pond", "Carp pond"))
