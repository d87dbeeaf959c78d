"""A question in another language than the memory: its meaning decides, and of its words only names and numbers count."""

from __future__ import annotations

import pytest
from recall_index import NOW, ByWords, ask, make_index, paths

from quaid.recall.query import list_shared_words, parse

SAFE = "รหัสเปิด ตู้นิรภัย คือ วันแต่งงาน ของเรา"
NOTES = {
    "facts/lock.md": "---\nid: 01a\n---\nMein Fahrrad steht im Keller, der Code vom Schloss ist das Alter der Katze.\n",
    "facts/safe.md": f"---\nid: 01b\n---\n{SAFE}\n",
    "facts/gift.md": "---\nid: 01c\n---\nMiriam bekommt von uns ein Service zur Hochzeit.\n",
}


class Understood(ByWords):
    """An embedder that takes a question for what `meant` says."""

    def __init__(self, meant: str) -> None:
        self.meant = meant

    def embed_query(self, text):
        return self.embed([self.meant])[0]


def first(question: str, meant: str, **more: str) -> str:
    embedder = Understood(meant)
    notes = NOTES | {f"facts/{name}.md": f"---\nid: {name}\n---\n{text}\n" for name, text in more.items()}
    index = make_index(notes, embedder)
    try:
        return paths(ask(index, question, embedder))[0]
    finally:
        index.close()


def test_a_word_that_another_language_spells_alike_does_not_outweigh_the_meaning() -> None:
    meant = f"{SAFE} der im"
    assert first("What is the code of the safe?", meant) == "facts/safe.md"


def test_it_counts_where_the_memory_has_the_language_of_the_question_too() -> None:
    safe = "The code of the safe is told by nobody, and this is what it is."
    assert first("What is the code of the safe?", f"{SAFE} {safe}", english=safe) == "facts/english.md"


def test_a_name_counts_in_every_language() -> None:
    assert first("What do we give to Miriam?", "ein der im Keller") == "facts/gift.md"


@pytest.mark.parametrize(("question", "words"), [
    ("When does Miriam open the winter tent in 2027?", ("miriam", "2027")),
    ("Где лежит файл redis и отчёт за Киев?", ("redis", "киев")), ("redis的端口是6379吗", ("redis", "端口", "6379")),
    ("Wo liegt der Bericht für köln?", ("bericht",)),
])  # fmt: skip
def test_words_that_are_shared_by_languages(question: str, words: tuple[str, ...]) -> None:
    shared = list_shared_words(parse(question, NOW))
    assert set(words) <= set(shared)
    assert not {word for word in set(shared) - set(words) if word.isascii() or word.upper() != word}


@pytest.mark.parametrize(("text", "question"), [
    ("Umowa na internet kończy się piętnastego listopada.", "Co wygasa w listopadzie?"),
    ("Yedek anahtarı alt kattaki komşuya bıraktık.", "Anahtarlar kimde?"),
    ("Запасной ключ лежит под цветочным горшком.", "Где стоит цветочный горшок?"),
    ("Nyckeln till båthuset hänger bakom spegeln.", "Var finns båthusets dörr?"),
])  # fmt: skip
def test_a_word_is_found_in_another_form_of_a_language_without_stems(text: str, question: str) -> None:
    index = make_index({"facts/a.md": f"---\nid: 01a\n---\n{text}\n", "facts/b.md": "---\nid: 01b\n---\nOther.\n"})
    assert paths(ask(index, question)) == ["facts/a.md"]
    index.close()


@pytest.mark.parametrize(("text", "question"), [
    ("Ο παππούς παίρνει το χάπι μετά το φαγητό.", "ΤΙ ΚΑΝΕΙ Ο ΠΑΠΠΟΥΣ;"), ("Ο γιατρός είπε όχι.", "ποιος γιατρος"),
    ("Gözlük Isparta çarşısında.", "ısparta"), ("Klucz leży w łóżku.", "lozku"), ("Họ ở Đà Nẵng.", "da nang"),
    ("नंबर मँगाना ज़रूरी है", "मंगाना"), ("أحمد يحب القهوة", "احمد"), ("Ёжик в тумане", "ежик"),
])  # fmt: skip
def test_a_letter_that_is_typed_in_two_ways_is_one(text: str, question: str) -> None:
    index = make_index({"facts/a.md": f"---\nid: 01a\n---\n{text}\n", "facts/b.md": "---\nid: 01b\n---\nOther.\n"})
    assert paths(ask(index, question)) == ["facts/a.md"]
    index.close()


def test_less_likeness_is_enough_between_two_languages_than_within_one() -> None:
    facts = {f"facts/{n}.md": f"---\nid: 01{n}\n---\n{text}\n" for n, text in enumerate((
        "Der Schlüssel für den Keller hängt hinter der Tür.", "Unsere Heizung wird jedes Jahr im Oktober gewartet.",
        "Die Kinder gehen in Leipzig zur Schule und danach zum Sport.",
    ))}  # fmt: skip
    embedder = Understood("hängt hinter ist wo")  # a cosine of .30
    index = make_index(facts, embedder)
    assert paths(ask(index, "Where is it?", embedder)) == ["facts/0.md"]
    assert paths(ask(index, "Wann kommt Besuch?", embedder)) == []
    index.close()
