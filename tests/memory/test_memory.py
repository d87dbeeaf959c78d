"""Memory, as whoever uses Quaid from Python meets it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest
from vaults import FACT, Vault, assert_verified, need_weights, paths, refused

from quaid import Memory
from quaid.errors import (
    BadInputError,
    FactTooShortError,
    NoteNotFoundError,
)
from quaid.model import Edge, Edit, Turn
from quaid.place import state_folder
from quaid.report.checks import examine
from quaid.report.status import status_of
from quaid.vault import transaction

pytestmark = pytest.mark.usefixtures("calm")

TALK = [
    ("Maya", "We adopted a quokka called Biscuit."), ("Assistant", "Where does it sleep?"),
    ("Maya", "In the laundry basket, mostly."), ("Assistant", "That sounds warm."),
]  # fmt: skip
START = datetime(2026, 11, 20, 14, 0, tzinfo=UTC)


@pytest.fixture
def memory(vault: Vault) -> Iterator[Memory]:
    with vault.memory() as opened:
        yield opened


def turns(*said: tuple[str, str]) -> list[Turn]:
    return [
        Turn(who, text, "assistant" if who == "Assistant" else "user", START + timedelta(minutes=number))
        for number, (who, text) in enumerate(said)
    ]


def episode(vault: Vault) -> Path:
    (path,) = (vault.root / "episodes").rglob("*.md")
    return path


def test_a_fact_is_a_file_a_commit_and_an_answer(vault, memory):
    made = memory.remember("Maya prefers oat milk", keywords=["coffee", "breakfast"], confidence=0.9)
    assert made.outcome == "created"
    assert vault.git("show", "--format=", "--name-only", "HEAD") == made.path
    assert (
        vault.git("log", "-1", "--format=%s%n%(trailers)") == f"remember: Maya prefers oat milk\nQuaid-Fact: {made.id}"
    )
    assert made.commit == vault.head()
    hit = memory.recall("breakfast").hits[0]
    assert (hit.id, hit.kind, hit.text, hit.path, hit.status) == (
        made.id, "fact", "Maya prefers oat milk", made.path, "active",
    )  # fmt: skip
    assert memory.get(made.id).text == memory.get(made.path).text == memory.get(made.id[-8:]).text == hit.text


def test_a_fact_said_again_is_confirmed_not_repeated(vault, memory):
    made = memory.remember("Maya prefers oat milk")
    for number, text in enumerate(("Maya prefers oat milk", "  maya prefers  oat milk. "), 1):
        again = memory.remember(text)
        assert (again.id, again.outcome) == (made.id, "confirmed")
        assert memory.get(made.id).document.confirmations == number
    assert memory.get(made.id).document.confidence > 0.8  # type: ignore[operator]
    assert len(list((vault.root / "facts").rglob("*.md"))) == 1


def test_owners_do_not_confirm_each_other(vault):
    with vault.memory(owner="maya") as hers, vault.memory(owner="jon") as his:
        first = hers.remember("The car needs new tyres")
        second = his.remember("The car needs new tyres")
        assert second.outcome == "created"
        assert hers.remember("The car needs new tyres").id == first.id
        assert his.get(second.id).document.owner == "jon"


@pytest.mark.parametrize("text", ["", "oat milk", "?? !! ..", "  two   words ", "花生", "🥜🚫"])
def test_fewer_than_three_words_are_no_fact(vault, memory, text):
    refused(lambda: memory.remember(text), FactTooShortError)
    assert vault.status() == ""


def test_a_fact_that_was_forgotten_or_is_over_is_not_confirmed(memory):
    first = memory.remember("Maya prefers oat milk")
    memory.forget(first.id)
    second = memory.remember("Maya prefers oat milk")
    assert second.outcome == "created"
    ended = memory.remember("Maya lives in Oslo now", valid_until="2020-01-01")
    assert memory.remember("Maya lives in Oslo now").id != ended.id


@pytest.mark.matrix
@pytest.mark.parametrize(("head", "survives", "outcome"), [
    ("", "Maya prefers oat milk in her coffee", "confirmed"),  # merged
    ("valid_until: 2026-01-01\n", "Maya prefers oat milk in her coffee", "created"),  # true until then
    ("", "Maya does not prefer oat milk", "created"),  # what replaced it says otherwise
    ("", None, "created"),
])  # fmt: skip
@pytest.mark.parametrize("said", ["Maya prefers oat milk", "maya prefers oat milk."])
def test_what_was_merged_away_and_is_said_again_confirms_what_it_became(vault, memory, head, survives, outcome, said):
    vault.write("facts/a.md", FACT.format(id=f"01a\n{head}superseded_by: '[[b]]'", text="Maya prefers oat milk"))
    vault.write("facts/b.md", FACT.format(id="01b\nsuperseded_by: '[[c]]'", text="Maya likes to prefer oat milk"))
    if survives:
        vault.write("facts/c.md", FACT.format(id="01c", text=survives))
    again = memory.remember(said)
    assert again.outcome == outcome
    assert (again.id == "01c") is (outcome == "confirmed")
    assert memory.remember(said).id == again.id


def test_two_facts_that_are_merged_into_each_other_are_no_survivor(vault, memory):
    for one, other in ("ab", "ba"):
        vault.write(
            f"facts/{one}.md", FACT.format(id=f"01{one}\nsuperseded_by: '[[{other}]]'", text="Maya prefers oat milk")
        )
    assert memory.remember("Maya prefers oat milk").outcome == "created"


DIFFERENT = [
    ("Maya has two cats and a dog", "Maya has three cats and a dog"),
    ("The rent is 1200 euros a month", "The rent is 1300 euros a month"),
    ("Maya was born on 3 May 1990", "Maya was born on 4 May 1990"),
    ("The meeting is on Monday morning", "The meeting is on Tuesday morning"),
    ("Her piano lesson is on monday evenings", "Her piano lesson is on tuesday evenings"),
    ("The trip begins in april this year", "The trip begins in august this year"),
    ("Maya is allergic to peanuts", "Jon is allergic to peanuts"),
    ("Maya likes the new office", "Maya does not like the new office"),
    ("Maya eats meat on weekends", "Maya never eats meat on weekends"),
    ("Maya works at Acme in Oslo", "Maya works at Acme in Bergen"),
    ("Maya can swim very well", "Maya can't swim very well"),
    ("Maya still works at the bakery", "Maya no longer works at the bakery"),
]


@pytest.mark.slow
def test_likeness_confirms_but_not_across_numbers_dates_names_and_negations(vault, monkeypatch):
    need_weights(monkeypatch)
    with vault.memory() as memory:
        for one, other in DIFFERENT:
            assert memory.remember(one).outcome == "created", one
            assert memory.remember(other).outcome == "created", other
        first = memory.remember("Maya can't stand hiking in the 2 mountains")
        again = memory.remember("Maya cannot stand hiking in the two mountains.")
        assert (again.outcome, again.id) == ("confirmed", first.id)
        assert memory.remember("Maya is allergic to peanuts").id == memory.remember("Maya has a peanut allergy").id
        assert "vector" in memory.recall("mountains").hits[0].channels
        assert memory.recall("mountains").degraded == ()
        assert_verified(memory)


def test_what_is_meant_is_found_in_other_words(vault, monkeypatch):
    need_weights(monkeypatch)
    with vault.memory() as memory:
        made = memory.remember("Maya enjoys hiking in the mountains")
        memory.remember("The rent is 1200 euros a month")
        assert [hit.id for hit in memory.recall("Who goes walking in the hills?").hits] == [made.id]


def test_a_link_is_normalised_and_makes_typed_entity_notes(vault, memory):
    made = memory.link("Acme", "employs", "[[Maya Chen]]")
    assert (made.outcome, made.text) == ("linked", "Maya Chen works_at Acme")
    assert set(made.created) == {"Maya Chen", "Acme"}
    assert memory.get("Maya Chen").document.type == "person"
    assert memory.get("Acme").document.type == "organization"
    assert memory.get("Maya Chen").edges == (Edge("Maya Chen", "works_at", "Acme"),)
    assert memory.link("maya chen", "works for", "ACME").outcome == "known"
    assert memory.link("Biscuit", "pet_of", "Maya Chen").text == "Maya Chen has_pet Biscuit"
    assert memory.get("Biscuit").document.type == "pet"
    assert memory.link("Maya Chen", "sibling_of", "Jon").text == memory.link("Jon", "brother_of", "Maya Chen").text
    assert len(list((vault.root / "entities").iterdir())) == 4
    assert any("Acme" in hit.text for hit in memory.recall("Where does Maya Chen work?").hits)
    assert_verified(memory)


@pytest.mark.parametrize(
    "edge", [("", "knows", "B"), ("A", "", "B"), ("A", "knows", "a"), ("A", "!!", "B"), ("[[]]", "knows", "B")]
)
def test_half_an_edge_is_refused(vault, memory, edge):
    refused(lambda: memory.link(*edge), BadInputError)
    assert vault.status() == ""


def test_a_link_leaves_every_other_byte_of_an_entity_note_alone(vault, memory):
    before = b"\xef\xbb\xbf---\r\nzeta: 007 # mine\r\ntype: person\r\naliases:\r\n  - 'Mae'\r\n---\r\nShe *is* my friend.  \r\n"
    vault.write("entities/Maya.md", before)
    vault.save()
    memory.link("Mae", "lives_in", "Oslo")
    after = (vault.root / "entities/Maya.md").read_bytes()
    assert after.startswith(before)
    assert after[len(before) :] == b"\r\n- lives_in [[Oslo]]\r\n"


def test_a_conversation_is_kept_once_and_grows(vault, memory):
    first = memory.extract(turns(*TALK[:2]), session="s1")
    assert (first.turns, first.new_turns, first.waiting) == (2, 2, True)
    assert memory.extract(turns(*TALK[:2]), session="s1").new_turns == 0
    grown = memory.extract(turns(*TALK), session="s1")
    assert (grown.path, grown.new_turns) == (first.path, 2)
    assert memory.extract(turns(*TALK[:1]), session="s1").new_turns == 0
    hit = memory.recall("laundry basket").hits[0]
    assert (hit.kind, hit.session, hit.turn, hit.speaker) == ("turn", "s1", 3, "Maya")
    assert memory.get(hit.id).text == f"Maya: {TALK[2][1]}" or memory.get(hit.id).text == TALK[2][1]
    assert vault.status() == ""


@pytest.mark.slow
def test_what_is_forgotten_comes_back_as_it_was(vault, memory):
    fact = memory.remember("Maya prefers oat milk")
    memory.link("Maya", "works_at", "Acme")
    memory.extract(turns(*TALK), session="s1")
    entity_id = memory.get("Acme").document.id
    before = vault.notes()
    for reference, back in (
        (fact.id, fact.id), (fact.path, fact.id), ("Acme", entity_id), (episode(vault).stem, f"episodes/2026/11/{episode(vault).name}")
    ):  # fmt: skip
        forgotten = memory.forget(reference)
        assert forgotten.path not in vault.notes()
        refused(lambda reference=reference: memory.get(reference), NoteNotFoundError)
        assert memory.restore(back).outcome == "restored", reference
        assert vault.notes() == before
        assert memory.restore(back).outcome == "unchanged"
    assert vault.status() == ""
    assert_verified(memory)


def test_a_relation_that_is_not_known_is_stored_and_named(memory):
    assert memory.link("Maya", "works_at", "Acme").hint is None
    linked = memory.link("Maya", "worksat", "Globex")
    assert "does not know the relation worksat" in linked.hint
    assert "works_at" in linked.hint


def test_what_was_forgotten_is_found_by_its_words(memory):
    for text in ("Ana plays the cello", "Ana plays the drums", "Tom plays chess"):
        memory.forget(memory.remember(text).id)
    assert memory.restore("tom CHESS").text == "Tom plays chess"
    assert "could be any of these" in str(refused(lambda: memory.restore("Ana plays")))
    assert memory.restore("the cello").outcome == "restored"
    assert memory.restore("Ana plays").text == "Ana plays the drums"
    refused(lambda: memory.restore("chess with dragons"))


def test_a_turn_is_forgotten_and_restored_any_number_of_times(vault, memory):
    memory.extract(turns(*TALK), session="s1")
    before, turn = episode(vault).read_bytes(), f"{episode(vault).stem}#t3"
    for _ in range(2):
        assert memory.forget(turn).outcome == "forgotten"
        assert memory.forget(turn).outcome == "unchanged"
        assert memory.recall("laundry", keyword_only=True).hits == ()
        assert b"laundry" not in episode(vault).read_bytes()
        assert memory.restore(turn).outcome == "restored"
        assert memory.restore(turn).outcome == "unchanged"
        assert episode(vault).read_bytes() == before
    for wrong in (f"{episode(vault).stem}#t99", f"{episode(vault).stem}#tx", "nothing#t1", "nothing", ""):
        refused(lambda wrong=wrong: memory.forget(wrong))
        refused(lambda wrong=wrong: memory.restore(wrong))


def test_forgetting_a_fact_says_where_it_was_said(vault, memory):
    memory.extract(turns(*TALK), session="s1")
    stem = episode(vault).stem
    fact = memory.remember("Biscuit sleeps in the laundry basket", turns=[f"[[{stem}#^t3]]"])
    assert [turn.cited.text for turn in memory.why(fact.id).turns] == [TALK[2][1]]
    assert f"{stem}#t3" in str(memory.forget(fact.id).hint)


# -- the laws ------------------------------------------------------------------------------------------------------------


def test_a_readers_connection_refuses_to_write(memory):
    index = memory.whole_index()
    for statement in ("DELETE FROM documents", "INSERT INTO meta VALUES ('a', 'b')", "CREATE TABLE x (y)", "PRAGMA user_version = 9",
                      "UPDATE chunks SET text = ''", "DROP TABLE edges", "INSERT INTO fulltext (rowid, text) VALUES (1, 'x')"):  # fmt: skip
        with pytest.raises(apsw.ReadOnlyError):
            index.execute(statement)
        with pytest.raises(apsw.Error):
            memory.index().execute(statement)


def test_reading_never_writes_the_record(vault, memory):
    memory.remember("Maya prefers oat milk")
    memory.extract(turns(*TALK), session="s1")
    vault.write("bare.md", b"No frontmatter, no newline at the end")
    vault.write("broken.md", b"---\nid: [\n---\r\nBroken.\r\n")
    vault.save()

    def picture() -> dict[str, tuple[int, int, bytes]]:
        return {
            path: ((vault.root / path).stat().st_mtime_ns, (vault.root / path).stat().st_ino, data)
            for path, data in vault.notes().items()
        }

    before, head = picture(), vault.head()
    memory.recall("oat milk")
    memory.search("newline")
    memory.get("bare.md")
    memory.why("bare.md")
    memory.sync()
    memory.reindex()
    memory.verify()
    assert (picture(), vault.head(), vault.status()) == (before, head, "")


def test_deleting_the_index_loses_nothing(vault, memory):
    memory.remember("Maya prefers oat milk")
    memory.link("Maya", "works_at", "Acme")
    memory.extract(turns(*TALK), session="s1")
    before = memory.verify()
    answers = [(hit.id, hit.text, hit.score) for hit in memory.recall("Where does Maya work?").hits]
    memory.close()
    (state_folder(vault.root) / "index.db").unlink()
    with vault.memory() as again:
        assert [(hit.id, hit.text, hit.score) for hit in again.recall("Where does Maya work?").hits] == answers
        assert again.verify().manifest == before.manifest


def test_two_machines_with_equal_files_print_the_same_manifest(vault, memory, tmp_path):
    memory.remember("Maya prefers oat milk")
    vault.git("clone", "-q", str(vault.root), str(tmp_path / "clone"))
    with Vault(tmp_path / "clone").memory() as other:
        assert other.verify().manifest == memory.verify().manifest
        other.remember("Jon prefers black tea")
        assert other.verify().manifest != memory.verify().manifest


def test_a_save_between_plan_and_write_is_planned_again(vault, memory, monkeypatch):
    memory.link("Maya", "works_at", "Acme")
    path, apply = vault.root / "entities" / "Maya.md", transaction.apply
    saves = iter(["First.", "Second."])

    def apply_late(*arguments: Any) -> Any:
        if word := next(saves, ""):
            path.write_text(f"{path.read_text()}\n{word}\n")
        return apply(*arguments)

    monkeypatch.setattr(transaction, "apply", apply_late)
    assert memory.link("Maya", "lives_in", "Oslo").outcome == "linked"
    assert path.read_text().endswith("[[Acme]]\n\nFirst.\n\nSecond.\n\n- lives_in [[Oslo]]\n")
    assert "First." not in vault.git("log", "-p")


@pytest.mark.parametrize("repository", [True, False])
def test_a_folder_of_notes_is_adopted_and_left_as_it_was(tmp_path, repository):
    owner = Vault(tmp_path / "notes")
    owner.write("Daily/2026-11-20.md", b"\xef\xbb\xbf# Today\r\n\r\n- [ ] feed the quokka\r\n")
    owner.write("No newline.md", b"---\ntags: [b, a]   # mine\n---\nA bare [[Link]]")
    owner.write("SOUL.md", b"My own soul.\n")
    owner.write(".gitignore", b"*.log\n")
    owner.write(".obsidian/app.json", b'{"legacyEditor":false}')
    owner.write("picture.png", bytes(range(256)))
    if repository:
        owner.git("init", "-q", "-b", "trunk")
        owner.git("add", "Daily")
        owner.save("mine")
        owner.write("uncommitted.md", "Not yet.\n")
    before = {name: hashlib.sha256(data).hexdigest() for name, data in owner.notes().items()}
    times = {name: (owner.root / name).stat().st_mtime_ns for name in before}
    memory, created = Memory.create(owner.root)
    with memory:
        assert paths(memory, "quokka") == {"Daily/2026-11-20.md"}
        assert memory.remember("Maya feeds the quokka daily").outcome == "created"
        after = {name: hashlib.sha256(data).hexdigest() for name, data in owner.notes().items()}
        assert {name: after[name] for name in before} == before
        assert {name: (owner.root / name).stat().st_mtime_ns for name in before} == times
        assert {name for name in after.keys() - before.keys() if not name.startswith("facts/")} == set(created.files)
        assert (created.plan.adopted, created.made_repository) == (True, not repository)
        assert_verified(memory)
    changed = set(owner.git("log", "--format=", "--name-only", "--author=quaid@localhost").splitlines())
    assert changed & before.keys() == set()
    assert (owner.run("check-ignore", "-q", ".quaid/index.db").returncode) == 0


def test_a_new_folder_becomes_a_vault_with_one_commit(tmp_path):
    memory, created = Memory.create(tmp_path / "deep" / "vault")
    with memory:
        new = Vault(memory.root)
        assert created.made_repository
        assert new.git("rev-list", "--count", "HEAD") == "1"
        assert new.status() == ""
        assert set(created.files) == set(new.notes())
        assert_verified(memory)


def test_what_a_killed_write_left_is_shown_with_the_next_step(vault):
    lock = vault.write(".git/index.lock", f"quaid-commit-1-{vault.head()}-ab\n")
    transaction.set_aside(vault.root, '"remember: it" could not be finished: no', [Edit("facts/a.md", None, b"it")])
    vault.write_state("pending.json", "{")
    (kept,) = (state_folder(vault.root) / "unfinished").iterdir()
    with vault.memory() as memory:
        shown = {item.what: item.next_step for item in status_of(memory).attention}
    assert str(kept) in shown['"remember: it" could not be finished: no']
    assert "next write" in shown["A killed write of Quaid left index.lock"]
    assert "next write" in shown["A write was interrupted"]
    findings = examine(vault.root)
    assert {finding.level for finding in findings if finding.name in {"writes", "git lock"}} == {"warning"}
    assert any(str(kept) in finding.next_step for finding in findings if finding.name == "writes")
    with vault.memory() as memory:
        memory.remember("Maya bought a blue kayak")
    assert not lock.exists()
