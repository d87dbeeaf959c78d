"""Two people of one first name: when a name joins who is known, when it does not, and what the second one is called."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime

import pytest
from matrices import for_each
from replay import facts_of, write_talk
from vaults import Vault, assert_verified

from quaid.capture.conversation_reader import HostAnswer
from quaid.capture.entities import EntityNames, NamedThing, plan_entity
from quaid.capture.relations import normalise_edge
from quaid.model import Edge, name_key, note_name
from quaid.vault import frontmatter
from quaid.vault.notes import StoredNote

NOW = datetime(2026, 11, 20, 14, 2, tzinfo=UTC)


def edge(text):
    subject, relation, object_ = text.split(" > ")
    return normalise_edge(Edge(subject, relation, object_))


class Memory:
    """Entity notes with their aliases, and edges, as a plan leaves them: `learn` is one conversation."""

    def __init__(self, *edges, **notes):
        self.notes = {name.replace("_", " "): (kind, list(aliases)) for name, (kind, *aliases) in notes.items()}
        self.edges = [edge(text) for text in edges]

    def find(self, name):
        for note, (kind, aliases) in self.notes.items():
            if name_key(name) in map(name_key, (note, *aliases)):
                edit = plan_entity(note, kind, NOW)
                text = (
                    frontmatter.set_fields(edit.after.decode(), {"aliases": aliases})
                    if aliases
                    else edit.after.decode()
                )
                return StoredNote(edit.rel_path, text.encode())
        return None

    def learn(self, *edges, names=(), said=(), speakers=("Maya",), owner=""):
        """What the ends of `edges` came to mean: name -> note."""
        pairs = [(called, note) for note, (_, aliases) in self.notes.items() for called in (note, *aliases)]
        known = EntityNames(
            pairs, self.find, NOW, speakers=speakers, owner=owner,
            find_edges=lambda note: [one for one in self.edges if note in (one.subject, one.object)],
        )  # fmt: skip
        new = [edge(text) for text in edges]
        known.learn(new, [NamedThing(name, *more) for name, *more in names], said, ())
        self.edges += [known.place(one) for one in new]
        for edit in known.edits:
            fields = frontmatter.parse(edit.after.decode()).fields
            listed = fields.get("aliases") or []
            self.notes[note_name(edit.rel_path)] = (
                fields["type"],
                [listed] if isinstance(listed, str) else list(listed),
            )
        return {name: known.resolve(name, "concept") for one in new for name in (one.subject, one.object)}

    def aliases(self, note):
        return self.notes[note][1]


SISTER = ("Anna > sister_of > Maya", "Anna > likes > Pierogi")
COLLEAGUE = ("Anna Kowalski > colleague_of > Maya", "Anna Kowalski > works_at > Acme")


@for_each("edges", list(itertools.permutations((*SISTER, *COLLEAGUE))))
def test_a_sister_and_a_colleague_of_one_name_in_one_answer_are_two_in_any_order(edges):
    memory = Memory()
    meant = memory.learn(*edges)
    assert (meant["Anna"], meant["Anna Kowalski"]) == ("Anna", "Anna Kowalski")
    assert memory.aliases("Anna Kowalski") == memory.aliases("Anna") == []
    assert edge("Anna > prefers > Pierogi") in memory.edges


@pytest.mark.parametrize(
    "sessions", [(SISTER, COLLEAGUE), (COLLEAGUE, SISTER), (COLLEAGUE, ("Anna > knows > Tom",), SISTER)]
)
def test_they_are_two_in_any_order_of_conversations(sessions):
    memory = Memory(Maya=("person",), Tom=("person",))
    for edges in sessions:
        memory.learn(*edges)
    assert edge("Anna Kowalski > colleague_of > Maya") in memory.edges
    sisters = {one.subject for one in memory.edges if one.relation == "sibling_of"}
    assert len(sisters) == 1
    assert "Anna Kowalski" not in sisters
    sister = sisters.pop()
    assert edge(f"{sister} > prefers > Pierogi") in memory.edges
    assert memory.learn("Anna > sibling_of > Maya", "Anna > likes > Bigos")["Anna"] == sister
    assert memory.learn("Anna > colleague_of > Maya", "Anna > likes > Tea")["Anna"] == "Anna Kowalski"


def test_the_second_of_a_name_that_is_taken_is_called_by_who_it_is():
    memory = Memory("Anna Kowalski > works_at > Acme", Anna_Kowalski=("person", "Anna"), Maya=("person",))
    memory.edges.append(edge("Anna Kowalski > colleague_of > Maya"))
    assert memory.learn(*SISTER)["Anna"] == "Anna (sibling of Maya)"
    assert memory.aliases("Anna (sibling of Maya)") == []
    assert memory.aliases("Anna Kowalski") == ["Anna"]


def test_two_who_are_only_ever_called_by_their_first_name_are_two():
    memory = Memory(Maya=("person",))
    memory.learn("Anna > colleague_of > Maya", "Anna > likes > Tea")
    meant = memory.learn("Anna > sister_of > Maya", "Anna > likes > Pierogi")
    assert (meant["Anna"], meant["Maya"]) == ("Anna (sibling of Maya)", "Maya")
    assert memory.learn("Anna > colleague_of > Maya", "Anna > likes > Milk")["Anna"] == "Anna"
    other = Memory("Anna > colleague_of > Tom", Anna=("person",), Tom=("person",))
    meant = other.learn("Anna > sister_of > Tom")  # who is another one, nobody can tell
    assert meant == {"Anna": "Anna", "Tom": "Tom"}


@for_each(("known", "told"), [
    ("Anna Kowalski > colleague_of > Maya", "Anna > parent_of > Maya"),
    ("Anna Kowalski > neighbour_of > Maya", "Maya > parent_of > Anna"),
    ("Anna Kowalski > works_at > Acme", "Anna > sister_of > Maya"),
    ("Anna Kowalski > works_at > Acme", "Anna > cousin_of > User"),
    ("Anna Kowalski > spouse_of > Piotr", "Anna > spouse_of > Tom"),
    ("Anna Kowalski > lives_in > Gdynia", "Anna > lives_in > Porto"),
    ("Anna Kowalski > born_in > Gdynia", "Anna > born_in > Porto"),
    ("Anna Kowalski > friend_of > Tom", "Anna > sibling_of > Maya Chen"),
    ("Anna Kowalski > parent_of > Tom", "Anna > grandparent_of > Tom"),
])  # fmt: skip
def test_what_speaks_against_one_person(known, told):
    for first, second in ((known, told), (told, known)):
        memory = Memory()
        memory.learn(first)
        meant = memory.learn(second)
        assert {*memory.notes} >= {"Anna", "Anna Kowalski"}, (first, meant)
        together = Memory()
        together.learn(first, second)
        assert {*together.notes} >= {"Anna", "Anna Kowalski"}


@for_each(("known", "told"), [
    ("Anna Kowalski > works_at > Acme", "Anna > likes > Pierogi"),
    ("Anna Kowalski > works_at > Acme", "Anna > parent_of > Tom"),
    ("Anna Kowalski > colleague_of > Maya", "Anna > friend_of > Maya"),
    ("Anna Kowalski > colleague_of > Maya", "Anna > spouse_of > Maya"),
    ("Anna Kowalski > sibling_of > Maya", "Anna > sister_of > Maya"),
    ("Anna Kowalski > spouse_of > Piotr Nowak", "Anna > spouse_of > Piotr"),
    ("Anna Kowalski > lives_in > Gdynia", "Anna > lives_in > Gdynia"),
    ("Anna Chen > friend_of > Tom", "Anna > sibling_of > Maya Chen"),
    ("Anna Kowalski > colleague_of > Tom", "Anna > sibling_of > Lena"),
])  # fmt: skip
def test_what_does_not(known, told):
    for first, second in ((known, told), (told, known)):
        apart, together = Memory(), Memory()
        apart.learn(first)
        assert apart.learn(second)
        together.learn(first, second)
        for memory in (apart, together):
            assert [note for note in memory.notes if note.startswith("Anna")] in (
                ["Anna"], ["Anna Kowalski"], ["Anna Chen"],
            )  # fmt: skip


def test_one_who_moves_or_changes_work_stays_one():
    memory = Memory("Anna Kowalski > lives_in > Gdynia", Anna_Kowalski=("person", "Anna"))
    meant = memory.learn("Anna > lives_in > Porto", "Anna > works_at > Acme", "Anna Kowalski > knows > Tom")
    assert meant["Anna"] == "Anna Kowalski"


def test_two_in_one_sentence_are_two():
    edges = ("Anna Kowalski > likes > Tea", "Anna > likes > Coffee")
    assert Memory().learn(*edges, said=["Anna Kowalski went to see Anna."])["Anna"] == "Anna"
    for said in ("Anna Kowalski likes tea. Anna likes coffee.", "Anna Kowalski is here.", "Annabel met Anna Kowalski."):
        assert Memory().learn(*edges, said=[said])["Anna"] == "Anna Kowalski"
    assert Memory().learn(*edges, "Anna > knows > Anna Kowalski")["Anna"] == "Anna"


def test_of_two_full_names_the_first_name_is_neither_whatever_comes_first():
    edges = ("Anna Kowalski > likes > Tea", "Anna Berg > likes > Milk", "Anna > likes > Coffee")
    for order in itertools.permutations(edges):
        memory = Memory()
        assert memory.learn(*order)["Anna"] == "Anna"
        assert {*memory.notes} >= {"Anna", "Anna Kowalski", "Anna Berg"}
        assert not any(aliases for _, aliases in memory.notes.values())


def test_of_two_full_names_the_first_name_is_the_one_it_has_a_tie_in_common_with():
    memory = Memory("Anna Berg > works_at > Acme", Anna_Kowalski=("person",), Anna_Berg=("person",))
    assert memory.learn("Anna > works_at > Acme", "Anna > likes > Tea")["Anna"] == "Anna Berg"
    assert memory.aliases("Anna Berg") == []


# What the model says


def test_names_that_a_model_lists_are_as_many_things():
    names = [("Anna", "person"), ("Anna Kowalski", "person")]
    assert Memory().learn("Anna > likes > Tea", "Anna Kowalski > likes > Tea", names=names)["Anna"] == "Anna"
    one, edges = (
        [("Anna Kowalski", "person", ("Anna",))],
        ("Anna > sibling_of > Maya", "Anna Kowalski > works_at > Acme"),
    )
    memory = Memory()
    assert memory.learn(*edges, names=one)["Anna"] == "Anna Kowalski"
    assert memory.aliases("Anna Kowalski") == ["Anna"]


def test_a_name_that_two_are_called_by_is_the_alias_of_neither():
    memory = Memory()
    names = [("Anna (sister of Maya)", "person", ("Anna",)), ("Anna Kowalski", "person", ("Anna",))]
    memory.learn("Anna (sister of Maya) > likes > Tea", "Anna Kowalski > works_at > Acme", names=names)
    assert memory.aliases("Anna (sister of Maya)") == memory.aliases("Anna Kowalski") == []
    assert memory.learn("Anna > sibling_of > Maya", names=[("Anna Berg", "person", ("Anna",))])["Anna"] == "Anna Berg"
    assert memory.aliases("Anna Berg") == []


def test_an_alias_that_a_model_gives_finds_who_is_known_by_it():
    memory = Memory(Bob=("person",), Acme=("organization",))
    names = [("Robert Smith", "person", ("Bob",))]
    assert memory.learn("Robert Smith > works_at > Acme", names=names)["Robert Smith"] == "Bob"
    assert memory.aliases("Bob") == ["Robert Smith"]


def test_the_kind_is_what_the_model_says_and_tells_things_apart():
    memory = Memory(Paris=("place",), Melanie=("person",))
    meant = memory.learn("Paris > owns > Rex", "Melanie Pottery Studio > owns > Kiln",
                         names=[("Paris", "person"), ("Rex", "pet"), ("Melanie Pottery Studio", "organization")])  # fmt: skip
    assert (meant["Paris"], meant["Melanie Pottery Studio"]) == ("Paris (owns Rex)", "Melanie Pottery Studio")
    assert (memory.notes["Rex"][0], memory.notes["Melanie Pottery Studio"][0]) == ("pet", "organization")
    assert memory.aliases("Melanie") == []


def test_names_in_scripts_without_capitals_are_names_where_the_model_lists_them():
    names = [
        ("李明", "person", ("小明",)), ("花生", "concept"), ("अनीता", "person"), ("أحمد", "person"), ("上海", "place"),
    ]  # fmt: skip
    edges = ("李明 > lives_in > 上海", "小明 > allergic_to > 花生", "अनीता > friend_of > أحمد", "李明 > felt > 很开心")
    memory = Memory()
    assert memory.learn(*edges, names=names)["小明"] == "李明"
    assert {*memory.notes} == {"李明", "上海", "花生", "अनीता", "أحمد"}
    assert memory.aliases("李明") == ["小明"]


@for_each("name", ["", "User", "I", "the trip", "joy", "her mother", "x" * 61, "assistant", "running in the rain"])
def test_what_a_model_lists_and_is_no_name_gets_no_note(name):
    memory = Memory(Tom=("person",))
    memory.learn("Tom > likes > Tea", names=[(name, "concept")], said=[f"Tom likes {name} and tea."])
    assert {*memory.notes} == {"Tom", "Tea"}


def test_two_of_one_name_without_capitals_are_told_apart_too():
    names = [
        ("李娜（王芳的同事）", "person", ("李娜",)),
        ("李娜（李明的妹妹）", "person", ("李娜",)),
        ("王芳", "person"),
        ("李明", "person"),
    ]
    memory = Memory()
    memory.learn("李娜（王芳的同事） > colleague_of > 王芳", "李娜（李明的妹妹） > sibling_of > 李明", names=names)
    assert not any(aliases for _, aliases in memory.notes.values())
    meant = memory.learn(
        "李娜 > sibling_of > 李明", "李娜 > likes > 花生", names=[("李娜", "person"), ("李明", "person")]
    )
    assert meant["李娜"] == "李娜（李明的妹妹）"


def test_aliases_are_names_and_what_somebody_is_called_only_here_does_not_last():
    names = [("Linda Chen", "person", ("she", "my boss", "Lin", "User")), ("李娜", "person", ("妹妹", "她", "小娜"))]
    memory = Memory()
    meant = memory.learn("Lin > likes > Tea", "妹妹 > friend_of > Linda Chen", "小娜 > friend_of > Lin", names=names)
    assert (meant["Lin"], meant["妹妹"], meant["小娜"]) == ("Linda Chen", "李娜", "李娜")
    assert (memory.aliases("Linda Chen"), memory.aliases("李娜")) == (["Lin"], ["小娜"])


@pytest.mark.parametrize("name", ["Anna (Maya's sister)", "Anna (the one with the dog)", "Anna (2)"])
def test_what_stands_in_brackets_belongs_to_the_name(name):
    memory = Memory()
    memory.learn(
        f"{name} > likes > Tea", "Anna Berg > likes > Tea", names=[(name, "person", ("Anna",)), ("Anna Berg", "person")]
    )
    assert {*memory.notes} == {name, "Anna Berg", "Tea"}


def test_a_pet_is_no_person_of_its_name():
    memory = Memory(Anna=("person",), Maya=("person",))
    assert memory.learn("Maya > has_pet > Anna") == {"Maya": "Maya", "Anna": "Anna (pet)"}


def test_who_is_only_mentioned_gets_a_note_and_what_is_not_mentioned_none():
    memory = Memory()
    names = [("Lena", "person"), ("Oslo", "place"), ("Jazz", "concept"), ("Nils", "person")]
    memory.learn(names=names, said=["Lena went to Oslo for the Jazz.", "Nilsson sang."])
    assert {*memory.notes} == {"Lena", "Oslo"}


# In a vault


def learn(vault, memory, number, answer, *said):
    path = write_talk(vault.root.parent / f"{number}.jsonl", *said, session=f"s{number}")
    with path.open("rb") as stream:
        return memory.extract(stream, answer=HostAnswer(answer, "a host"))


def test_a_vault_keeps_two_annas_apart_and_finds_both(vault: Vault) -> None:
    work = facts_of("Anna Kowalski is a colleague of Maya at Acme.", edges=[
        {"subject": "Anna Kowalski", "relation": "colleague_of", "object": "Maya"}]) | {
        "names": [{"name": "Anna Kowalski", "kind": "person", "aliases": ["Anna"]}]}  # fmt: skip
    home = facts_of("Anna is a sister of Maya and loves pierogi.", edges=[
        {"subject": "Anna", "relation": "sister_of", "object": "Maya"}, {"subject": "Anna", "relation": "loves", "object": "Pierogi"}])  # fmt: skip
    with vault.memory() as memory:
        learn(vault, memory, 1, work, "Anna Kowalski sits next to me at Acme.")
        learn(vault, memory, 2, home, "My sister Anna loves pierogi.")
        memory.sync()
        notes = vault.notes()
        fact = next(data.decode() for name, data in notes.items() if b"pierogi" in data and name.startswith("facts/"))
        assert "entities/Anna (sibling of Maya).md" in notes
        assert "[[Anna (sibling of Maya)|Anna]] is a sister of" in fact
        assert "- [[Anna (sibling of Maya)]] loves [[Pierogi]]" in fact
        assert "Pierogi" not in notes["entities/Anna Kowalski.md"].decode()
        told = memory.recall("What do we know about Anna?").hits
        assert {"entities/Anna (sibling of Maya).md"} < {hit.path for hit in told}
        assert "colleague" in " ".join(hit.text for hit in told)
        assert "pierogi" in memory.recall("What does Anna love?").hits[0].text
        assert_verified(memory)


@pytest.mark.parametrize("word", ["Mom", "Mama", "Papa", "Oma", "妈妈"])
def test_what_somebody_calls_a_relative_is_the_name_of_nobody(word):
    memory = Memory()
    memory.learn("Ruth Berg > parent_of > Maya", names=[("Ruth Berg", "person", (word,))], said=("Ruth Berg knits.",))
    assert memory.aliases("Ruth Berg") == []
    memory.learn(f"{word} > lives_in > Oslo", names=[(word, "person")], said=(f"{word} moved.",), speakers=("Tom",))
    assert word not in memory.notes


# A word that says what sort of thing a name is


@for_each(("first", "second"), [
    ("Anna > lives_in > Haus Birkenhain", "Tom > visited > Birkenhain"),
    ("Anna > lives_in > Birkenhain", "Tom > visited > Haus Birkenhain"),
    ("Anna > works_at > Café Linde", "Tom > prefers > Linde"),
    ("Anna > works_on > Project Orion", "Tom > works_on > Orion"),
    ("Anna > member_of > Falcon Team", "Tom > member_of > Falcon"),
    ("Anna > knows > Dr. Weber", "Weber > works_at > Charité"),
    ("Anna Weber > works_at > Charité", "Tom > knows > Prof. Anna Weber"),
])  # fmt: skip
@pytest.mark.parametrize("together", [True, False])
def test_a_word_of_kind_before_or_after_a_name_makes_no_other_thing(first, second, together):
    memory = Memory()
    meant = memory.learn(first, second) if together else memory.learn(first) | memory.learn(second)
    names = {name: note for name, note in meant.items() if name.split()[-1] in first and name.split()[-1] in second}
    names |= {name: note for name, note in meant.items() if "Falcon" in name}
    assert len(names) == 2
    assert len(set(names.values())) == 1
    (note,) = set(names.values())
    assert memory.aliases(note) == [name for name in names if name != note]


@for_each(("first", "second"), [
    ("Anna > works_at > Café Berlin", "Tom > lives_in > Berlin"),
    ("Anna > lives_in > Haus Birkenhain", "Tom > born_in > Birkenhain"),
    ("Anna > lives_in > Haus Birkenhain", "Kita Rot > located_in > Birkenhain"),
    ("Anna > visited > Oxford Street", "Tom > visited > Oxford"),
    ("Anna > works_on > Project Paris", "Tom > traveled_to > Paris"),
    ("Anna > lives_in > Haus Birkenhain", "Haus Birkenhain > located_in > Birkenhain"),
    ("Anna > lives_in > Haus Anna", "Anna > knows > Tom"),
    ("Anna > knows > Herr Weber", "Anna > knows > Frau Weber"),
])  # fmt: skip
def test_a_town_a_person_or_another_such_thing_of_that_name_stays_apart(first, second):
    for steps in ((first, second), (second, first)):
        memory = Memory()
        for step in steps:
            memory.learn(step)
        assert not any(aliases for _, aliases in memory.notes.values())


def test_a_word_of_kind_tells_apart_what_the_model_or_a_sentence_tells_apart():
    birkenhain = "Anna > lives_in > Haus Birkenhain", "Tom > visited > Birkenhain"
    both = [("Haus Birkenhain", "place"), ("Birkenhain", "place")]
    assert len(set(Memory().learn(*birkenhain, names=both).values())) == 4
    assert len(set(Memory().learn(*birkenhain, said=["Haus Birkenhain is far from Birkenhain."]).values())) == 4
    assert len(set(Memory().learn("Anna > visited > Birkenhain", names=[("Birkenhain", "person")]).values())) == 2
    kinds = Memory(Birkenhain=("person",)).learn("Tom > visited > Haus Birkenhain")
    assert kinds["Haus Birkenhain"] == "Haus Birkenhain"
    two = Memory(Haus_Birkenhain=("place",), Café_Birkenhain=("place",)).learn("Tom > visited > Birkenhain")
    assert two["Birkenhain"] == "Birkenhain"
