"""One person, two names: what people call each other, and how they introduce themselves, teaches aliases."""

from __future__ import annotations

import json

import pytest
from matrices import for_each

from quaid import Memory
from quaid.capture.other_names import list_other_names
from quaid.vault import frontmatter

OWNER = "Robert Miller"


def learned(*turns):
    """What a conversation of lines such as `Anna: Hey Mel!` teaches."""
    said = [(speaker, text) for speaker, _, text in (turn.partition(": ") for turn in turns)]
    return dict(map(reversed, list_other_names(said, OWNER)))


@for_each(("turns", "names"), [
    ("Anna: Hey Mel! | Melanie: Hi", {"Mel": "Melanie"}),
    ("Anna: That helps. Thanks, Mel. | Melanie: Sure", {"Mel": "Melanie"}),
    ("Anna: Hallo Bob! | Robert: Moin", {"Bob": "Robert"}),
    ("Anna: Salut Mél! | Mélanie: Coucou", {"Mél": "Mélanie"}),
    ("Anna: Привет, Саша! | Александр: Привет", {"Саша": "Александр"}),
    ("Anna: Hi Robbie! | Robert: Hi | Tim: Hi Robbie", {"Robbie": "Robert"}),
    ("Anna: Hey Sunny! | Melanie: Hi | Anna: Thanks, Sunny.", {"Sunny": "Melanie"}),
    ("Melanie: You can call me Mel. | Anna: Fine", {"Mel": "Melanie"}),
    ("Melanie: Everybody calls me Lani, by the way. | Anna: Fine", {"Lani": "Melanie"}),
    ("Melanie: Nenn mich Mel! | Anna: Gut", {"Mel": "Melanie"}),
    ("Melanie: Appelle-moi Mel. | Anna: Bien", {"Mel": "Melanie"}),
    ("Melanie: Llámame Mel. | Anna: Bueno", {"Mel": "Melanie"}),
    ("Melanie: Chiamami Mel. | Anna: Bene", {"Mel": "Melanie"}),
    ("小明: 大家好，叫我明明。 | Anna: Hi", {"明明": "小明"}),
    ("Maya: Hello, I'm Maya Chen. | Anna: Hi", {"Maya Chen": "Maya"}),
    ("User: I'm Bob. | Assistant: Hello Bob!", {"Bob": OWNER}),
    ("User: Please call me Dutch Miller. | Assistant: Sure", {}),
    ("User: Just call me Duke | Assistant: Sure", {"Duke": OWNER}),
])  # fmt: skip
def test_names_that_people_are_called_by(turns, names):
    assert learned(*turns.split(" | ")) == names


@pytest.mark.parametrize(
    "turns",
    [
        "Anna: Hey Buddy! Hi Buddy! | Melanie: Hi",
        "Anna: Hey everyone! Hi all, hi Mom! | Melanie: Hi",
        "Anna: Hey Canada! | Melanie: Hi",
        "Anna: Hey Mel! | Melanie: Hi | Melissa: Hi",
        "Anna: Hey Mel! My sister Mel is here. | Melanie: Hi",
        "Anna: Hey Mel! | Melanie: Did you meet Mel? Mel is my aunt.",
        "Anna: Hi Tom! | Melanie: Hi | Tom: Hi",
        "Anna: Hi Annie! | Melanie: Hi | Tom: Hi",
        "Melanie: Hey Mel! | Anna: Hi",
        "Melanie: Don't call me Mel. Nobody calls me Mel. | Anna: Right",
        'Melanie: He said "call me Ishmael". | Anna: Right',
        "Melanie: Call me Monday. Call me Doctor. | Anna: Right",
        "Melanie: I'm Irish. I am German. | Anna: Me too",
        "Kim: My name is Inigo Montoya. | Anna: Ha",
        "User: Write to Mel | Assistant: Hi Mel!\n\nThanks, Mel. Call me Bob.",
        "User: Hey Siri! Hi Claude! | Assistant: Hi",
        f"User: Here is her mail: {'It was a long day. ' * 20} Call me Mel. | Assistant: Hi",
        "Speaker 1: Hey | Speaker 2: Hi Mel! Thanks Mel!",
    ],
)
def test_what_is_nobodys_other_name(turns):
    assert not learned(*turns.split(" | "))


def extract(memory, folder, session, *turns):
    lines = [json.dumps({"session": session, "started": "2026-11-02T10:00:00Z"})]
    for turn in turns:
        speaker, _, text = turn.partition(": ")
        lines.append(json.dumps({"role": "user", "speaker": speaker, "content": text}))
    path = folder / f"{session}.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return memory.extract(path)


def aliases(memory):
    """Name of each entity note -> its aliases."""
    notes = (memory.root / "entities").glob("*.md")
    return {
        note.stem: frontmatter.list_values(frontmatter.parse(note.read_text()).fields.get("aliases")) for note in notes
    }


@pytest.fixture
def memory(tmp_path):
    with Memory.create(tmp_path / "vault")[0] as memory:
        yield memory


def test_a_conversation_that_no_model_reads_teaches_a_name_and_recall_finds_the_person_by_it(memory, tmp_path):
    extract(memory, tmp_path, "one", "Anna: Hey Mel! How was it?", "Melanie: I made a bowl in the pottery class.")
    extract(memory, tmp_path, "two", "Anna: I painted a bowl in the pottery class.", "Melanie: Nice!")
    assert aliases(memory) == {"Melanie": ["Mel"]}
    assert memory.history("Melanie")[0].subject.startswith("keep: ")
    memory.sync()
    for name in ("Mel", "Melanie"):
        found = memory.recall(f"What did {name} make in the pottery class?", kinds={"turn"}, depth="fast", keep=False)
        assert found.hits[0].speaker == "Melanie", name


def test_a_name_that_somebody_has_is_not_given_to_another_one(memory, tmp_path):
    extract(memory, tmp_path, "one", "Anna: Hey Mel!", "Melanie: Hi")
    extract(memory, tmp_path, "two", "Tom: Hey Mel!", "Melissa: Hi")
    assert aliases(memory) == {"Melanie": ["Mel"]}


def test_what_is_known_of_a_name_speaks_against_it(memory, tmp_path):
    memory.link("Mel", "sibling_of", "Anna")
    extract(memory, tmp_path, "one", "Anna: Hey Mel!", "Melanie: Hi")
    assert aliases(memory) == {"Mel": [], "Anna": []}


def test_two_full_names_are_two_people(memory, tmp_path):
    extract(memory, tmp_path, "one", "Maya: I'm Maya Chen.", "Anna: Hi")
    extract(memory, tmp_path, "two", "Maya: I'm Maya Lopez.", "Anna: Hi")
    assert aliases(memory) == {"Maya": ["Maya Chen"]}


def test_a_name_is_learned_once(memory, tmp_path):
    for session in ("one", "two"):
        assert extract(memory, tmp_path, session, f"Anna: Hey Mel! It is number {session}.", "Melanie: Hi").commit
    assert aliases(memory) == {"Melanie": ["Mel"]}
    assert len(memory.history("Melanie")) == 1
