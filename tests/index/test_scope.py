"""What a question may see: filters that SQLite applies before anything is found."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest
from recall_index import ByWords, ask, everything, ids, make_index, without

from quaid.index.vectors import VectorMatrix
from quaid.recall.options import KINDS

EMBEDDER = ByWords()
ALL = everything()


@pytest.fixture(autouse=True)
def without_folding(monkeypatch):
    """Facts that say the same are all shown."""
    monkeypatch.setattr("quaid.recall.scoring.normal_form", lambda _text: "")


def fact(note_id: str, text: str = "The lantern is lit", more: str = "", path: str = "") -> tuple[str, str]:
    return path or f"facts/{note_id}.md", f"---\nid: {note_id}\ntype: fact\n{more}---\n{text}\n"


def episode(session: str, *turns: str, times: tuple[str, ...] = ()) -> tuple[str, str]:
    """Turns at `times` (HH:MM of 20 November 2026)."""
    said = (
        f"**Maya**{f' ({time})' if time else ''}: {text} ^t{n}"
        for n, (text, time) in enumerate(zip(turns, times or [""] * len(turns), strict=True), 1)
    )
    head = f"---\nid: e{session}\ntype: episode\nsession: {session}\nstarted: 2026-11-20T09:00:00Z\n---\n"
    return f"episodes/{session}.md", head + "\n\n".join(said) + "\n"


def seen(notes: dict[str, str], question: str = "lantern", **options: Any) -> set[str]:
    """The same by words alone and by all channels, or this fails."""
    index = make_index(notes, EMBEDDER)
    by_words = ids(ask(index, question, EMBEDDER, ALL, keyword_only=True, **options))
    by_all = ids(ask(index, question, EMBEDDER, ALL, **options))
    index.close()
    assert by_words == by_all
    return by_all


def test_a_project_leaves_its_own_and_what_belongs_to_none():
    notes = dict([
        fact("none"), fact("own", more="project: quaid\n"), fact("other", more="project: garden\n"),
        fact("technical", more="project: quaid\ntechnical: true\n"),
    ])  # fmt: skip
    assert seen(notes) == {"none", "own", "other", "technical"}
    assert seen(notes, projects=frozenset({"quaid"})) == {"none", "own", "technical"}
    assert seen(notes, projects=frozenset({"quaid", "garden"})) == {"none", "own", "other", "technical"}
    assert seen(notes, projects=frozenset({"unheard of"})) == {"none"}


def test_statuses_and_privacies():
    notes = dict([
        fact("active"), fact("pending", more="status: pending\n"),
        fact("shared", more="status: approved\nprivacy: shared\n"), fact("public", more="privacy: public\n"),
    ])  # fmt: skip
    assert seen(notes, statuses=frozenset({"pending", "approved"})) == {"pending", "shared"}
    assert seen(notes, privacies=frozenset({"public", "shared"})) == {"shared", "public"}
    assert seen(notes, privacies=frozenset({"private"})) == {"active", "pending"}
    assert seen(notes, privacies=frozenset({"public"}), statuses=frozenset({"pending"})) == set()


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_can_be_asked_for_alone(kind):
    notes = dict([
        fact("fact"), episode("s", "the lantern went out"),
        ("entities/Lantern.md", "---\nid: entity\ntype: object\n---\nA lantern of brass.\n"),
        ("own/note.md", "---\nid: note\n---\nbuy a lantern\n"),
        ("snippets/SOUL.snippets.md", "---\nid: snippet\n---\n## Compaction - 2026-02-12 14:30\n\n- likes the lantern\n"),
        ("journal/SOUL.journal.md", "---\nid: journal\n---\n## 2026-02-12 - Compaction\n\nWe lit the lantern.\n"),
        ("projects/house/lighting.md", "---\nid: doc\n---\n# Light\n\nThe lantern needs oil.\n"),
    ])  # fmt: skip
    index = make_index(notes, EMBEDDER)
    for keyword_only in (False, True):
        hits = ask(index, "lantern", EMBEDDER, kinds=frozenset({kind}), keyword_only=keyword_only).hits
        assert [(hit.kind, hit.id) for hit in hits] == [(kind, "s#t1" if kind == "turn" else kind)]
    everything_else = ask(index, "lantern", EMBEDDER, ALL, kinds=frozenset(set(KINDS) - {kind})).hits
    assert {hit.kind for hit in everything_else} == set(KINDS) - {kind}


def test_days_between_which_a_memory_was_made():
    notes = dict([
        fact("undated"), fact("old", more="created: 2020-05-01T23:59:00Z\n"), fact("new", more="created: 2026-11-01\n"),
        episode("s", "the lantern went out", times=("09:05",)),
    ])  # fmt: skip
    day = date.fromisoformat
    assert seen(notes, first=day("2026-01-01")) == {"undated", "new", "s#t1"}
    assert seen(notes, last=day("2026-11-01")) == {"undated", "old", "new"}
    assert seen(notes, first=day("2020-05-01"), last=day("2020-05-01")) == {"undated", "old"}
    assert seen(notes, first=day("2026-11-20")) == {"undated", "s#t1"}


def test_moments_between_which_a_memory_was_made():
    notes = dict([
        fact("undated"), fact("day", more="created: 2026-11-20\n"),
        fact("early", more="created: 2026-11-20T08:00:00+02:00\n"),
        episode("s", "lantern one", "lantern two", times=("09:05", "11:00")),
    ])  # fmt: skip
    ten, six = datetime(2026, 11, 20, 10, tzinfo=UTC), datetime(2026, 11, 20, 6, 0, 30, tzinfo=UTC)
    assert seen(notes, first=ten) == {"undated", "day", "s#t2"}
    assert seen(notes, last=ten) == {"undated", "day", "early", "s#t1"}
    assert seen(notes, first=six, last=ten) == {"undated", "day", "early", "s#t1"}
    assert seen(notes, last=six.replace(hour=5)) == {"undated", "day"}
    assert seen(notes, first=ten.replace(day=21)) == {"undated"}


def test_the_session_that_is_going_on_is_left_out_until_it_is_compacted():
    notes = dict([
        episode("now", "lantern one", "lantern two", "lantern three", times=("09:00", "09:10", "09:20")),
        episode("then", "lantern before", times=("08:00",)),
        fact("hers", more="session: now\ncreated: 2026-11-20T09:15:00Z\n"), fact("mine", more="session: then\n"),
        fact("nobodys"),
    ])  # fmt: skip
    others = {"then#t1", "mine", "nobodys"}
    assert seen(notes) == others | {"now#t1", "now#t2", "now#t3", "hers"}
    assert seen(notes, exclude_session="now") == others

    def compacted(hour: int, minute: int) -> set[str]:
        return (
            seen(notes, exclude_session="now", compacted_at=datetime(2026, 11, 20, hour, minute, tzinfo=UTC)) - others
        )

    assert compacted(8, 0) == set()
    assert compacted(9, 10) == {"now#t1", "now#t2"}
    assert compacted(9, 15) == {"now#t1", "now#t2", "hers"}
    assert compacted(23, 0) == {"now#t1", "now#t2", "now#t3", "hers"}


CHAIN = dict([
    fact("oslo", "Maya's lantern is in Oslo", more="valid_from: 2018-01-01\nsuperseded_by: '[[bergen]]'\n"),
    fact("bergen", "Maya's lantern is in Bergen", more="valid_from: 2020-03-01\nsuperseded_by: turku\n"),
    fact("turku", "Maya's lantern is in Turku", more="created: 2023-06-15T10:00:00Z\n"),
    fact("leeds", "Maya's lantern was in Leeds", more="valid_from: 2019-01-01\nvalid_until: 2019-12-31\n"),
    fact("lost", "Maya's lantern was lost", more="superseded_by: gone\n"), fact("always", "Maya has one lantern"),
])  # fmt: skip


@pytest.mark.parametrize(("day", "true"), [
    ("2017-06-01", set()), ("2018-01-01", {"oslo"}), ("2019-06-01", {"oslo", "leeds"}), ("2019-12-30", {"oslo", "leeds"}),
    ("2019-12-31", {"oslo"}), ("2020-02-29", {"oslo"}), ("2020-03-01", {"bergen"}), ("2023-06-14", {"bergen"}),
    ("2023-06-15", {"turku"}),  # it replaced another one on that day, with no word on since when it holds
    ("2030-01-01", {"turku"}),
])  # fmt: skip
def test_what_was_true_on_a_day(day, true):
    assert seen(CHAIN, at=date.fromisoformat(day)) == true | {"always"}


def test_what_is_over_is_shown_when_it_is_asked_for():
    assert seen(CHAIN) == {"turku", "always"}
    assert seen(CHAIN, superseded=True) == {"oslo", "bergen", "turku", "leeds", "lost", "always"}
    index = make_index(CHAIN)
    hits = ask(index, "lantern", superseded=True, profile=ALL).hits
    assert {hit.id for hit in hits if hit.superseded} == {"oslo", "bergen", "leeds", "lost"}
    why = {cut["id"]: cut["why"] for cut in ask(index, "lantern").trace["cut"]}
    assert {why["oslo"], why["bergen"], why["lost"]} == {"superseded"}
    assert why["leeds"] == "expired"


def test_a_fact_holds_until_the_day_of_its_end():
    notes = dict([fact("a", more="valid_until: 2026-01-02\n")])
    assert seen(notes, now=datetime(2026, 1, 1, 23, tzinfo=UTC)) == {"a"}
    assert seen(notes, now=datetime(2026, 1, 2, tzinfo=UTC)) == set()


@pytest.fixture(scope="module")
def crowd():
    """5,000 notes that say what is asked, and one that is allowed to."""
    more = "created: 2020-01-01\n"
    notes = dict(fact(f"n{number}", f"lantern lamp number {number}", more) for number in range(5_000))
    notes |= dict([fact("one", "a lamp", more=f"{more}project: quaid\nstatus: pending\nprivacy: shared\nowner: jon\n")])
    notes |= dict([episode("s", "a lamp", times=("09:05",))])
    return make_index(notes, EMBEDDER)


@pytest.mark.parametrize(("options", "found"), [
    ({"statuses": frozenset({"pending"})}, {"one"}), ({"privacies": frozenset({"shared"})}, {"one"}),
    ({"owners": frozenset({"nobody"})}, {"one"}), pytest.param({"kinds": frozenset({"turn"})}, {"s#t1"}),
    ({"first": date(2026, 11, 20), "exclude_session": "x", "kinds": frozenset({"turn"})}, {"s#t1"}),
])  # fmt: skip
def test_a_filter_that_leaves_one_of_5000_finds_it(crowd, options, found):
    question, matrix = "lantern lamp number", VectorMatrix()
    assert ids(ask(crowd, question, keyword_only=True, **options)) == found
    by_vector = without("graph", "cited", cut_share=0.0)
    for _ in range(3):  # the first by vec0, the others by the matrix
        answer = ask(crowd, question, EMBEDDER, by_vector, matrix=matrix, **options)
        assert ids(answer) == found


def test_what_stands_around_a_hit_is_in_scope_too():
    times = ("09:00", "09:10", "09:20")
    index = make_index(dict([episode("now", "the kettle", "the lantern", "not compacted yet", times=times)]))
    gate = datetime(2026, 11, 20, 9, 10, tzinfo=UTC)
    (hit,) = ask(index, "lantern", budget=200, exclude_session="now", compacted_at=gate).hits
    assert (hit.text, [each.text for each in hit.beside]) == ("the lantern", ["the kettle"])
